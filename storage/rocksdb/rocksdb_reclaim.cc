// The RocksDB engine: the space of dead collections and keyspaces.
//
// Every flush and compaction leaves them out anyway (reclaim_filter.h). Here files are looked for
// that are worth the work of their own: those that hold nothing else are deleted, those of which
// a good part is dead are written again where they are, without the levels above and below. A file
// of which a third is dead costs two bytes written for each byte that comes back; none costs more.
#include <rocksdb/convenience.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "storage/rocksdb/reclaim_plan.h"
#include "storage/rocksdb/rocksdb_engine.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace ingot::storage {

// A live table file, and what the plan says of it.
struct RocksdbEngine::Table {
  Space space;
  rocksdb::SstFileMetaData file;
  int level = 0;
  PlanTable plan;
  double dead_share = 0;

  // Of the bytes on the disk.
  double dead_bytes() const { return dead_share * static_cast<double>(file.size); }
};

namespace {

constexpr double kDeadShareMin = 1.0 / 3;
constexpr uint64_t kPieceBytes = 128 << 20;  // of neighbouring files that are written as one
constexpr auto kFlushAfter = std::chrono::minutes(10);
constexpr auto kFlushLogAfter = std::chrono::seconds(5);

}  // namespace

size_t RocksdbEngine::add_dead(GarbageKind kind, std::span<const uint64_t> ids) {
  return dead(kind).add(ids);
}

Status RocksdbEngine::reclaim(GarbageKind kind, Reclaimed* out) {
  *out = {};
  DeadIds& dead_ids = dead(kind);
  if (dead_ids.size() == 0) return {};
  if (Status status = flush_dead(); !status.ok()) return status;
  // Before the tables are listed: what a flush of others writes meanwhile is not among them.
  const uint32_t flushed = flushed_epoch(kind);
  std::vector<Table> tables;
  if (Status status = list_tables(kind, &tables); !status.ok()) return status;

  std::vector<PlanTable> notes;
  notes.reserve(tables.size());
  for (Table& table : tables) notes.push_back(std::move(table.plan));
  ReclaimPlan plan = plan_reclaim(dead_ids, flushed, notes);
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i].plan = std::move(notes[i]);
    tables[i].dead_share = plan.dead_share[i];
  }
  dead_ids.remove(plan.gone);
  out->gone = std::move(plan.gone);
  out->left = dead_ids.size();
  if (out->left == 0) return {};
  if (Status status = delete_dead_files(kind, tables); !status.ok()) return status;
  return rewrite_dead_files(tables, &out->again);
}

// Nothing is gone before it has left the memtables. They are flushed in the course of things, but
// nobody hears of it; and a log stays for as long as one space has a change in it that is not in a
// table yet: a quiet space would keep what was reclaimed from the others.
Status RocksdbEngine::flush_dead() {
  constexpr uint64_t kKeptLogBytes = 16 << 20;
  const uint64_t log_bytes = ledger_.bytes();
  const bool log_is_long =
      log_bytes >= kKeptLogBytes && log_bytes >= 2 * shared_.memtables->memory_usage();
  bool unflushed = false;
  std::chrono::steady_clock::time_point since;
  {
    std::lock_guard lock(flushed_mutex_);
    unflushed = std::ranges::any_of(
        std::array{GarbageKind::kCollection, GarbageKind::kKeyspace},
        [&](GarbageKind kind) { return flushed_[dead_index(kind)] < dead(kind).newest(); });
    since = flushed_at_;
  }
  const auto age = std::chrono::steady_clock::now() - since;
  const bool late = (unflushed && age > kFlushAfter) || (log_is_long && age > kFlushLogAfter);
  return late ? flush() : Status();
}

uint32_t RocksdbEngine::flushed_epoch(GarbageKind kind) const {
  std::lock_guard lock(flushed_mutex_);
  return flushed_[dead_index(kind)];
}

Status RocksdbEngine::list_tables(GarbageKind kind, std::vector<Table>* tables) const {
  for (Space space : owned_spaces(kind)) {
    rocksdb::TablePropertiesCollection properties;
    const rocksdb::Status status = db_->GetPropertiesOfAllTables(handle(space), &properties);
    if (!status.ok()) return to_status(status);
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handle(space), &metadata);
    std::map<std::string, std::pair<int, const rocksdb::SstFileMetaData*>> files;
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        files[std::filesystem::path(file.name).filename()] = {level.level, &file};
      }
    }
    for (const auto& [path, found] : properties) {
      Table table{.space = space, .file = {}, .plan = {}};
      table.plan = {.ids = read_table_ids(*found, run_), .every_id = space != Space::kOrder};
      // A file may have gone between the two questions: it counts, but nothing can be done with it.
      if (const auto file = files.find(std::filesystem::path(path).filename());
          file != files.end()) {
        table.level = file->second.first;
        table.file = *file->second.second;
      } else {
        table.file.being_compacted = true;
      }
      tables->push_back(std::move(table));
    }
  }
  std::ranges::sort(*tables, [](const Table& a, const Table& b) {
    return std::tie(a.space, a.level, a.file.smallestkey) <
           std::tie(b.space, b.level, b.file.smallestkey);
  });
  return {};
}

// Tables of removals are compacted at once (rocksdb_options.cc), but they must be tables.
Status RocksdbEngine::make_room() {
  return flush();
}

// What no compaction need read again.
Status RocksdbEngine::delete_dead_files(GarbageKind kind, std::vector<Table>& tables) {
  constexpr size_t kFilesMax = 1000;  // RocksDB holds its mutex while it looks for the files
  for (Space space : owned_spaces(kind)) {
    std::vector<std::string> bounds;
    for (Table& table : tables) {
      if (table.space != space || table.level == 0 || table.file.being_compacted) continue;
      const std::vector<IdSpan>& spans = table.plan.ids.spans;
      if (spans.empty() || bounds.size() == 2 * kFilesMax) continue;
      if (!dead(kind).covers(spans.front().first, spans.back().last)) continue;
      bounds.push_back(owned_begin(kind, spans.front().first));
      bounds.push_back(owned_end(kind, spans.back().last));
      table.dead_share = 0;  // nothing is left to do with it
      reclaim_freed_ += table.file.size;
    }
    const std::vector<rocksdb::Slice> slices(bounds.begin(), bounds.end());
    std::vector<rocksdb::RangePtr> ranges;
    for (size_t i = 0; i < slices.size(); i += 2) ranges.emplace_back(&slices[i], &slices[i + 1]);
    if (ranges.empty()) continue;
    const std::lock_guard lock(files_mutex_);
    rocksdb::Status status = keep_files();
    if (status.ok()) {
      status = rocksdb::DeleteFilesInRanges(db_.get(), handle(space), ranges.data(), ranges.size(),
                                            /*include_end=*/false);
    }
    let_files_go(status);
    if (!status.ok()) return to_status(status);
  }
  return {};
}

// The file that is most dead and its neighbours, as far as they are worth it too; or level 0.
Status RocksdbEngine::rewrite_dead_files(const std::vector<Table>& tables, bool* again) {
  const auto worth_it = [](const Table& table) {
    return table.level > 0 && !table.file.being_compacted && table.dead_share >= kDeadShareMin;
  };
  auto first = tables.end();
  for (auto it = tables.begin(); it != tables.end(); ++it) {
    if (!worth_it(*it)) continue;
    if (first == tables.end() || it->dead_share > first->dead_share) first = it;
  }
  if (first == tables.end()) return rewrite_level_0(tables, again);
  std::vector<const Table*> piece = {&*first};
  uint64_t bytes = first->file.size;
  for (auto it = first + 1; it != tables.end() && worth_it(*it) && it->space == first->space &&
                            it->level == first->level && bytes + it->file.size <= kPieceBytes;
       ++it) {
    piece.push_back(&*it);
    bytes += it->file.size;
  }
  return rewrite(piece, first->level, again);
}

// The files of level 0 can only go to the next level all together, with what they meet there.
Status RocksdbEngine::rewrite_level_0(const std::vector<Table>& tables, bool* again) {
  for (Space space : kAllSpaces) {
    std::vector<const Table*> piece;
    uint64_t base = 0;
    if (!db_->GetIntProperty(handle(space), rocksdb::DB::Properties::kBaseLevel, &base)) continue;
    double dead_bytes = 0;
    double bytes = 0;
    std::string smallest;
    std::string largest;
    for (const Table& table : tables) {
      if (table.space != space || table.level != 0) continue;
      if (piece.empty() || table.file.smallestkey < smallest) smallest = table.file.smallestkey;
      largest = std::max(largest, table.file.largestkey);
      piece.push_back(&table);
    }
    if (piece.empty()) continue;
    bool busy = false;
    for (const Table& table : tables) {
      const bool met = table.space == space && table.level == static_cast<int>(base) &&
                       table.file.largestkey >= smallest && table.file.smallestkey <= largest;
      if (table.space != space || (table.level != 0 && !met)) continue;
      busy = busy || table.file.being_compacted;
      dead_bytes += table.dead_bytes();
      bytes += static_cast<double>(table.file.size);
    }
    if (busy || dead_bytes < kDeadShareMin * bytes) continue;
    return rewrite(piece, static_cast<int>(base), again);
  }
  return {};
}

// Of what compact_files() says: beside tables it writes files whose names begin with letters.
bool RocksdbEngine::names_table(const rocksdb::Status& failed) const {
  const std::string text = failed.ToString();
  const size_t at = text.find(path_ + "/");
  return at != std::string::npos &&
         std::isdigit(static_cast<unsigned char>(text[at + path_.size() + 1])) != 0;
}

// Others' changes and recoveries do not wait until it is over. Where a table fails the manifest has
// not been written, and what there is of the table must give its space back to a full disk.
rocksdb::Status RocksdbEngine::compact_files(const rocksdb::CompactionOptions& options, Space space,
                                             const std::vector<std::string>& names, int level,
                                             rocksdb::CompactionJobInfo* info) {
  std::unique_lock lock(files_mutex_);
  rocksdb::Status status = keep_files();
  if (!status.ok()) return status;
  const int recoveries = recoveries_;
  lock.unlock();
  rewriting_ = true;
  status = db_->CompactFiles(options, handle(space), names, level, -1, nullptr, info);
  rewriting_ = false;
  lock.lock();
  if (recoveries == recoveries_) let_files_go(names_table(status) ? rocksdb::Status() : status);
  return status;
}

Status RocksdbEngine::rewrite(const std::vector<const Table*>& piece, int level, bool* again) {
  rocksdb::CompactionOptions options;
  options.compression = rocksdb::kDisableCompressionOption;  // that of the space
  options.output_file_size_limit = 32 << 20;
  std::vector<std::string> names;
  for (const Table* table : piece) {
    names.push_back(table->file.name);
    options.output_file_size_limit =
        std::max<uint64_t>(options.output_file_size_limit, table->file.size);
  }
  rocksdb::CompactionJobInfo info;
  const rocksdb::Status status = compact_files(options, piece.front()->space, names, level, &info);
  if (is_conflict(status)) return {};
  if (!status.ok()) return to_status(status);
  *again = true;  // where one was worth it, others may be
  const uint64_t in = info.stats.total_input_bytes;
  const uint64_t out = info.stats.total_output_bytes;
  reclaim_rewritten_ += out;
  reclaim_freed_ += in - std::min(in, out);
  return {};
}

}  // namespace ingot::storage
