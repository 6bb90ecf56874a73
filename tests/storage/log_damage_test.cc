// A damaged log: an end that a crash cut off is forgiven, and whatever a power loss left of what
// was never synced; damage in what was synced is not.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "storage/codec.h"
#include "storage/log_end.h"
#include "storage/salvage/checksum.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr int kRecords = 400;
constexpr int kSynced = 200;

std::filesystem::path largest_log(const std::string& directory) {
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".log") continue;
    if (log.empty() || entry.file_size() > std::filesystem::file_size(log)) log = entry.path();
  }
  return log;
}

std::filesystem::path newest_log(const std::string& directory) {
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") log = std::max(log, entry.path());
  }
  return log;
}

void overwrite(const std::filesystem::path& path, uint64_t at, const std::string& bytes) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(at))
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Where the length of the last record stands.
uint64_t last_length(const std::filesystem::path& path) {
  constexpr uint64_t kBlockBytes = 32 << 10;
  const std::string bytes = content_of(path);
  uint64_t last = 0;
  for (uint64_t at = 0; at + 7 <= bytes.size();) {
    last = at + 4;
    at += 7 + static_cast<uint8_t>(bytes[last]) + 256 * static_cast<uint8_t>(bytes[last + 1]);
    if (kBlockBytes - at % kBlockBytes < 7) at += kBlockBytes - at % kBlockBytes;
  }
  return last;
}

uint64_t number_of(const std::filesystem::path& log) {
  return std::stoull(log.stem().string());
}

// A mark of LogLedger; as earlier versions write it without what follows it.
std::string mark_of(const std::filesystem::path& log, uint64_t bytes, bool is_tagged = true) {
  const uint64_t number = number_of(log);
  std::string mark;
  append_le64(&mark, number);
  append_le64(&mark, bytes);
  append_le64(&mark, number ^ ~bytes);
  if (is_tagged) append_le64(&mark, ~(number * 0x9e3779b97f4a7c15u ^ bytes));
  return mark;
}

// Writes it anew, in both of its places.
void mark_synced(const std::filesystem::path& log, uint64_t bytes, bool is_tagged = true) {
  const std::string mark = mark_of(log, bytes, is_tagged);
  const std::filesystem::path path = log.parent_path() / "SYNCED";
  std::ofstream(path, std::ios::binary) << mark << std::string(4096 - mark.size(), 0) << mark;
}

// And behind it that `log` was begun when `before` had so many bytes.
void link(const std::filesystem::path& log, const std::filesystem::path& before, uint64_t bytes) {
  std::string link;
  append_le64(&link, number_of(log));
  append_le64(&link, number_of(before));
  append_le64(&link, bytes);
  append_le64(&link, ~(number_of(log) ^ number_of(before) ^ bytes));
  const std::filesystem::path path = log.parent_path() / "SYNCED";
  std::filesystem::resize_file(path, 8192);
  std::ofstream(path, std::ios::binary | std::ios::app) << link;
}

}  // namespace

TEST_CASE("a log behind one that was not synced") {
  TemporaryDirectory directory;
  const FileForm form = GENERATE(FileForm::kRocksdb, FileForm::kLeveldb);
  const auto make = [&](const std::string& name, uint64_t records) {
    const std::filesystem::path path = directory.file(name);
    std::ofstream file(path, std::ios::binary);
    for (uint64_t i = 0; i < records; ++i) {
      std::string record(1, 1);  // its type, a whole one
      record += "content of a record";
      std::string head;
      append_le32(&head, masked_crc(record));
      head += std::string{static_cast<char>(record.size() - 1), 0};
      file << head << record;
    }
    return path;
  };
  const auto first = make("000005.log", 9);
  const auto second = make("000007.log", 4);
  const auto newest = make("000009.log", 3);
  const uint64_t before = std::filesystem::file_size(second);
  const uint64_t all = std::filesystem::file_size(newest);
  mark_synced(second, before / 4);
  link(newest, second, before);
  std::string told;
  const auto sizes = [&] {
    const auto status = cut_lost_end(directory.file(""), form, [&](auto text) { told = text; });
    REQUIRE(status.ok());
    CHECK(std::filesystem::file_size(first) > 0);
    return std::pair(std::filesystem::file_size(second), std::filesystem::file_size(newest));
  };

  SECTION("stays when nothing is missing") {
    CHECK(sizes() == std::pair(before, all));
    CHECK(told.empty());
  }
  SECTION("is lost with the end of that one, where a record ends") {
    std::filesystem::resize_file(second, before / 4 * 3);
    CHECK(sizes() == std::pair(before / 4 * 3, uint64_t{0}));
    CHECK(told.find("its 78 bytes") != std::string::npos);
    CHECK(sizes() == std::pair(before / 4 * 3, uint64_t{0}));
  }
  SECTION("or within one") {
    std::filesystem::resize_file(second, before - 1);
    CHECK(sizes() == std::pair(before / 4 * 3, uint64_t{0}));
  }
  SECTION("and when nobody knows where that one ended") {
    link(second, first, 0);
    CHECK(sizes() == std::pair(before, uint64_t{0}));
  }
  SECTION("stays when it was synced itself") {
    mark_synced(newest, all);
    link(second, first, 0);
    CHECK(sizes() == std::pair(before, all));
  }
  SECTION("stays when that one is in tables, and gone") {
    std::filesystem::remove(second);
    CHECK(cut_lost_end(directory.file(""), form, {}).ok());
    CHECK(std::filesystem::file_size(newest) == all);
  }
  SECTION("stays when an older version wrote it, which synced that one first") {
    mark_synced(second, before / 4, /*is_tagged=*/false);
    if (GENERATE(false, true)) link(second, first, 0);  // which a newer one has left
    CHECK(sizes() == std::pair(before, all));
  }
  SECTION("is lost when the link is torn") {
    overwrite(directory.file("SYNCED"), 8192, std::string{static_cast<char>(9 ^ 1)});
    CHECK(sizes() == std::pair(before, uint64_t{0}));
  }
  SECTION("and when the last mark is, with what precedes it") {
    link(second, first, 0);
    overwrite(directory.file("SYNCED"), GENERATE(0, 4096), mark_of(second, before / 2, false));
    CHECK(sizes() == std::pair(before, uint64_t{0}));
  }
  SECTION("stays when SYNCED is no file") {
    const std::filesystem::path synced = directory.file("SYNCED");
    std::filesystem::remove(synced);
    std::filesystem::create_directory(synced);
    CHECK(sizes() == std::pair(before, all));
  }
}

TEST_CASE("a damaged log") {
  TestEngine engine(GENERATE("rocksdb", "leveldb"));
  INFO(engine.name());
  for (int i = 0; i < kRecords; ++i) {
    if (i == kSynced) REQUIRE(engine->sync().ok());
    REQUIRE(engine.put(Space::kMeta, std::to_string(i), noise(500, 1)).ok());
  }
  engine.close();
  const std::filesystem::path log = largest_log(engine.options().path);
  const auto bytes = std::filesystem::file_size(log);
  REQUIRE(bytes > kRecords * 500);

  SECTION("cut off in its last record, it loses that record alone") {
    std::filesystem::resize_file(log, bytes - 100);
    engine.reopen();
    CHECK(engine.scan(Space::kMeta).size() == kRecords - 1);
    CHECK(engine.get(Space::kMeta, std::to_string(kRecords - 1)) == "<absent>");
  }
  SECTION("cut off behind the head of a record, up to which it was synced, it loses that record") {
    // A large record reaches the file in pieces: a sync may come between its head and its bytes.
    const uint64_t end_of_head = last_length(log) - 4 + 7;
    mark_synced(log, end_of_head);
    std::filesystem::resize_file(log, end_of_head);
    // Starts that came no further than that; what else is there is none of their business.
    std::filesystem::create_directory(engine.options().path + "/000000.log");
    const FileForm form = engine.name() == "rocksdb" ? FileForm::kRocksdb : FileForm::kLeveldb;
    for (int start = 0; start < 2; ++start) {
      CHECK(cut_lost_end(engine.options().path, form, {}).ok());
    }
    std::filesystem::remove(engine.options().path + "/000000.log");
    engine.reopen();
    CHECK(engine.scan(Space::kMeta).size() == kRecords - 1);
  }
  SECTION("cut off in a record that was synced, it is refused") {
    mark_synced(log, bytes - 50);
    std::filesystem::resize_file(log, bytes - 50);
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
  }
  SECTION("with a hole in what was not synced, it ends there") {
    // A page that was never written is of zeros, which the engines would pass over in silence.
    overwrite(log, bytes * 3 / 4, GENERATE(std::string(4096, 0), std::string("damage")));
    engine.reopen();
    int kept = 0;
    while (engine.get(Space::kMeta, std::to_string(kept)) != "<absent>") ++kept;
    CHECK(engine.scan(Space::kMeta).size() == static_cast<size_t>(kept));
    CHECK(kept >= kRecords * 3 / 4 - 20);
    CHECK(kept < kRecords - 50);
    REQUIRE(engine.put(Space::kMeta, "after", "v", Durability::kSynced).ok());
    engine.reopen();
    CHECK(engine.get(Space::kMeta, "after") == "v");
  }
  SECTION("with a hole, and nobody knows what was synced, it is refused") {
    std::filesystem::remove(engine.directory().file("db") + "/SYNCED");
    overwrite(log, bytes * 3 / 4, "damage");
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
  }
  SECTION("with a length that became longer, in what was synced, it is refused") {
    // An engine would take the record for one that a crash cut off.
    const std::string name = GENERATE("log", "log before", "manifest");
    std::filesystem::path path = log;
    if (name == "log") {
      engine.reopen();
      REQUIRE(engine.put(Space::kMeta, "last", "v", Durability::kSynced).ok());
      engine.close();
      path = newest_log(engine.options().path);
    } else if (name == "log before") {
      path = log.parent_path() / "000001.log";
      std::filesystem::copy_file(log, path);
    } else {
      std::string current;
      std::getline(std::ifstream(log.parent_path() / "CURRENT"), current);
      path = log.parent_path() / current;
    }
    const uint64_t at = last_length(path) + 1;
    const char high = content_of(path)[at];
    overwrite(path, at, std::string(1, static_cast<char>(high ^ 0x20)));
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
  }
  SECTION("that is missing, with what was synced, is missed") {
    std::filesystem::remove(log);
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
    CHECK(status.message().contains("is missing"));
  }
  SECTION("that is missing, because all of it is in tables, is not missed") {
    const std::string synced = content_of(log.parent_path() / "SYNCED");
    engine.reopen();
    REQUIRE(engine->flush().ok());
    engine.close();
    CHECK(!std::filesystem::exists(log));
    std::ofstream(log.parent_path() / "SYNCED", std::ios::binary) << synced;
    engine.reopen();
    CHECK(engine.scan(Space::kMeta).size() == kRecords);
  }
  SECTION("damaged in what was synced, it is refused rather than shortened") {
    const int way = GENERATE(0, 1, 2);
    if (way == 0) overwrite(log, bytes / 4, "damage");
    if (way == 1) overwrite(log, bytes / 4, std::string(4096, 0));
    if (way == 2) std::filesystem::resize_file(log, bytes / 4);
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
  }
}

}  // namespace ingot::storage
