// Finding and removing the tables that LevelDB has forgotten.
#include "storage/leveldb/leveldb_garbage.h"

#include <leveldb/db.h>

#include <charconv>
#include <map>
#include <sstream>
#include <string>

#include "storage/leveldb/leveldb_files.h"

namespace ingot::storage {
namespace {

constexpr std::chrono::seconds kPeriod{1};  // the tables of a large disk are many

using Clock = std::chrono::steady_clock;

uint64_t count_tables(leveldb::DB* db) {
  constexpr int kLevels = 7;
  uint64_t tables = 0;
  for (int level = 0; level < kLevels; ++level) {
    std::string files;
    uint64_t count = 0;
    if (!db->GetProperty("leveldb.num-files-at-level" + std::to_string(level), &files)) return 0;
    std::from_chars(files.data(), files.data() + files.size(), count);
    tables += count;
  }
  return tables;
}

}  // namespace

// The epoch may have changed twice before the read was counted.
ReadEpochs::Read::Read(ReadEpochs* epochs) {
  for (;;) {
    const uint64_t epoch = epochs->epoch_;
    reads_ = &epochs->reads_[epoch % 2];
    ++*reads_;
    if (epochs->epoch_ == epoch) return;
    --*reads_;
  }
}

bool LeveldbGarbage::is_due() const {
  return !found_.empty() || Clock::now() - looked_at_ >= kPeriod;
}

void LeveldbGarbage::space_is_there() {
  found_.clear();
  looked_at_ = Clock::now();
}

void LeveldbGarbage::remove_some(leveldb::DB* db) {
  if (!epochs_->only_new()) return;
  for (const std::filesystem::path& table : found_) {
    std::error_code gone;
    // LevelDB has it open, perhaps. Somebody's copy by links keeps what it has.
    if (std::filesystem::hard_link_count(table, gone) == 1) {
      std::filesystem::resize_file(table, 0, gone);
    }
    std::filesystem::remove(table, gone);
  }
  found_.clear();
  if (!is_due()) return;
  looked_at_ = Clock::now();
  found_ = find(db);
  // What begins to read from now on sees a version without them.
  if (!found_.empty()) epochs_->next();
}

// In this order: a table that is there, and is of no work that goes on, was of a version before.
std::vector<std::filesystem::path> LeveldbGarbage::find(leveldb::DB* db) const {
  std::map<uint64_t, std::filesystem::path> tables;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    const std::string stem = at->path().stem();
    uint64_t number = 0;
    const auto parsed = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (at->path().extension() == ".ldb" && parsed.ec == std::errc()) tables[number] = at->path();
  }
  // To name them all takes long where they are many, and reads wait for it.
  const uint64_t counted = count_tables(db);
  if (tables.size() <= counted) return {};
  for (const uint64_t number : env_->tables_of_work()) tables.erase(number);
  std::string version;
  if (!db->GetProperty("leveldb.sstables", &version)) return {};
  // " number:bytes[first key .. last key]", and headings
  std::istringstream lines(version);
  uint64_t named = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    uint64_t number = 0;
    if (!(words >> number)) continue;
    tables.erase(number);
    ++named;
  }
  // Where the version has just changed, or is told in a form that is not known here.
  if (named != counted) return {};
  std::vector<std::filesystem::path> found;
  for (auto& [number, path] : tables) found.push_back(std::move(path));
  return found;
}

}  // namespace ingot::storage
