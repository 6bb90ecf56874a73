// The LevelDB engine: a space is a one-byte key prefix. See storage/engine.h for the contract.
//
// What LevelDB lacks: a cache-only read (every probe is a miss), checkpoints, a compaction filter
// (reclaim() deletes key by key, and compacts only where that is worth it), a cache whose size
// changes while it runs.
#include "storage/leveldb/leveldb_engine.h"

#include <fmt/format.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "storage/dead_ids.h"
#include "storage/leveldb/leveldb_cursor.h"
#include "storage/leveldb/leveldb_files.h"
#include "storage/leveldb/leveldb_status.h"
#include "storage/log_end.h"
#include "storage/log_files.h"
#include "storage/log_ledger.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kTableBytes = 4 * kMiB;

class LeveldbSnapshot : public Snapshot {
 public:
  explicit LeveldbSnapshot(leveldb::DB* db) : db_(db), snapshot_(db->GetSnapshot()) {}
  ~LeveldbSnapshot() override { db_->ReleaseSnapshot(snapshot_); }
  const leveldb::Snapshot* raw() const { return snapshot_; }

 private:
  leveldb::DB* const db_;
  const leveldb::Snapshot* const snapshot_;
};

const leveldb::Snapshot* raw(const Snapshot* snapshot) {
  return snapshot == nullptr ? nullptr : static_cast<const LeveldbSnapshot*>(snapshot)->raw();
}

class LeveldbBatch : public Batch {
 public:
  void put(Space space, std::string_view key, std::string_view value) override {
    batch_.Put(prefixed(space, key), leveldb::Slice(value.data(), value.size()));
  }
  void remove(Space space, std::string_view key) override { batch_.Delete(prefixed(space, key)); }
  void clear() override { batch_.Clear(); }
  size_t bytes() const override { return batch_.ApproximateSize(); }

  // LevelDB writes the sequence number of the commit into the batch.
  leveldb::WriteBatch* raw() const { return &batch_; }

 private:
  mutable leveldb::WriteBatch batch_;
};

// Of the memory number an eighth each for two memtables, a quarter for the filters and indexes
// of open tables, the rest for blocks.
uint64_t memtable_bytes(uint64_t cache_bytes) {
  return std::clamp<uint64_t>(cache_bytes / 8, kMiB, 64 * kMiB);
}
int open_files_max(uint64_t cache_bytes) {
  constexpr uint64_t kBytesPerTable = 96 * 1024;  // filter and index of 4 MB of small records
  return static_cast<int>(std::clamp<uint64_t>(cache_bytes / 4 / kBytesPerTable, 64, 10'000));
}

}  // namespace

class LeveldbEngine : public Engine {
 public:
  static OpenResult open(const EngineOptions& options, Disk* disk);
  ~LeveldbEngine() override;

  std::string_view name() const override { return "leveldb"; }
  std::string version() const override {
    return fmt::format("{}.{}", leveldb::kMajorVersion, leveldb::kMinorVersion);
  }
  Capabilities capabilities() const override { return {}; }

  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override;
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override {
    return make_leveldb_cursor(db_.get(), space, raw(options.snapshot), options);
  }
  std::unique_ptr<Snapshot> new_snapshot() override {
    return std::make_unique<LeveldbSnapshot>(db_.get());
  }
  std::unique_ptr<Batch> new_batch() override { return std::make_unique<LeveldbBatch>(); }
  Status flush() override;
  size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) override;
  Status reclaim(GarbageKind kind, Reclaimed* out) override;
  Status compact(Space space, const KeyRange& range) override;
  Status checkpoint(const std::string& path) override;
  EngineStats stats() const override;
  void reset_stats() override {
    bytes_written_ = 0;
    reclaim_rewritten_ = 0;
    reclaim_freed_ = 0;
  }
  void set_cache_bytes(uint64_t bytes) override;
  void set_compaction_rate(uint64_t bytes_per_second) override { rate_ = bytes_per_second; }

 protected:
  Status do_write(const Batch& batch, Durability durability) override;
  Status do_sync() override;
  Status do_try_resume() override;

 private:
  LeveldbEngine(const EngineOptions& options, Disk* disk);
  Status open_database(const EngineOptions& options);
  Status mend_logs();
  Status commit(leveldb::WriteBatch* batch, bool sync);
  Status append(leveldb::WriteBatch* batch, bool sync);  // under write_mutex_
  void flush_memtable();
  // What is dead of one kind, and how far that is deleted.
  struct Dead {
    DeadIds ids;
    size_t space = 0;  // of the first id: index in owned_spaces()
    std::string from;  // and where in it the next step begins; empty: at its first key
  };
  Dead& dead(GarbageKind kind) {
    return kind == GarbageKind::kCollection ? dead_collections_ : dead_keyspaces_;
  }
  Status delete_some(GarbageKind kind, Dead* dead, Reclaimed* out);
  Status delete_piece(leveldb::Iterator* it, const std::string& begin, const std::string& end,
                      std::string* next, uint64_t* deleted);
  void note_deleted(const std::string& begin, const std::string& end, uint64_t bytes);
  Status compact_deleted(bool* again);
  Status compact_run(const std::string& begin, const std::string& end);
  void pace(uint64_t bytes, std::chrono::steady_clock::time_point begin) const;
  uint64_t headroom() const;
  uint64_t size_of(const std::string& begin, const std::string& end) const;
  void log(const std::string& line) const {
    if (on_log_) on_log_(line);
  }

  // Constant after open; the first two outlive db_, which uses them.
  const std::unique_ptr<const leveldb::FilterPolicy> filter_;
  const std::unique_ptr<leveldb::Cache> cache_;
  const std::string path_;
  const uint64_t cache_capacity_;
  const uint64_t memtable_bytes_;
  const std::function<void(const std::string&)> on_log_;
  LogLedger ledger_;  // thread safe
  LeveldbEnv env_;
  std::unique_ptr<leveldb::DB> db_;

  // Held for each write, which LevelDB takes one at a time anyway.
  std::mutex write_mutex_;
  // Guarded by write_mutex_: a write failed for lack of space. LevelDB would go on in the same log,
  // at an offset that is not the file's any more.
  bool torn_ = false;

  mutable std::mutex reclaim_mutex_;
  // Guarded by reclaim_mutex_:
  Dead dead_collections_;
  Dead dead_keyspaces_;
  // Keys with the space's prefix: what was deleted between them and not compacted since.
  struct Deleted {
    std::string end;
    uint64_t bytes = 0;
  };
  std::map<std::string, Deleted> deleted_;

  std::atomic<uint64_t> reclaim_rewritten_ = 0;
  std::atomic<uint64_t> reclaim_freed_ = 0;
  std::atomic<uint64_t> rate_;  // bytes a second that reclaim() may delete; 0: no limit
  std::atomic<uint64_t> bytes_written_ = 0;  // counted by any thread
};

OpenResult open_leveldb(const EngineOptions& options) {
  return open_leveldb_on(options, Disk::of_machine());
}

OpenResult open_leveldb_on(const EngineOptions& options, Disk* disk) {
  return LeveldbEngine::open(options, disk);
}

OpenResult LeveldbEngine::open(const EngineOptions& options, Disk* disk) {
  std::error_code error;
  std::filesystem::create_directories(options.path, error);
  if (error) {
    return {nullptr, Status(Status::Code::kIo, fmt::format("cannot create the directory '{}': {}",
                                                           options.path, error.message()))};
  }
  std::unique_ptr<LeveldbEngine> engine(new LeveldbEngine(options, disk));
  if (Status status = engine->open_database(options); !status.ok()) return {nullptr, status};
  return {std::move(engine), Status()};
}

LeveldbEngine::LeveldbEngine(const EngineOptions& options, Disk* disk)
    : Engine(options.on_background_error),
      filter_(options.bloom_bits > 0 ? leveldb::NewBloomFilterPolicy(options.bloom_bits) : nullptr),
      cache_(leveldb::NewLRUCache(options.cache_bytes / 2)),
      path_(options.path),
      cache_capacity_(options.cache_bytes),
      memtable_bytes_(memtable_bytes(options.cache_bytes)),
      on_log_(options.on_log),
      ledger_(options.path),
      env_(disk, &ledger_,
           [this] {
             (void)note({Status::Code::kNoSpace, "a table waits for space"});
           }),
      dead_collections_{.ids = DeadIds(std::max(kMiB, options.cache_bytes / 16)), .from = {}},
      dead_keyspaces_{.ids = DeadIds(kMiB), .from = {}},
      rate_(options.compaction_rate) {}

LeveldbEngine::~LeveldbEngine() {
  env_.set_patient(false);  // whatever still waits for space fails now
}

Status LeveldbEngine::open_database(const EngineOptions& options) {
  const std::string& compression = options.compression;
  if (compression != "none" && compression != "snappy" && compression != "lz4" &&
      compression != "zstd") {
    return {
        Status::Code::kInvalid,
        fmt::format("unknown compression '{}'; it is one of none, snappy, lz4, zstd", compression)};
  }
  if (compression == "lz4" || compression == "zstd") {
    log(fmt::format("LevelDB cannot compress with {}; it uses snappy", compression));
  }
  leveldb::Options db_options;
  db_options.env = &env_;
  db_options.create_if_missing = true;
  // A log that is damaged before its end refuses to open rather than dropping what follows.
  db_options.paranoid_checks = true;
  db_options.write_buffer_size = memtable_bytes_;
  db_options.max_open_files = open_files_max(options.cache_bytes);
  db_options.block_cache = cache_.get();
  db_options.max_file_size = kTableBytes;
  db_options.compression =
      compression == "none" ? leveldb::kNoCompression : leveldb::kSnappyCompression;
  db_options.filter_policy = filter_.get();

  if (Status status = mend_logs(); !status.ok()) return status;
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(db_options, path_, &db);
  if (!status.ok()) return to_open_status(status, path_);
  db_.reset(db);
  env_.set_patient(true);
  ledger_.begin_marking();
  return {};
}

// Whoever else has the directory keeps his logs: opening it will say so.
Status LeveldbEngine::mend_logs() {
  leveldb::FileLock* lock = nullptr;
  if (!env_.LockFile(path_ + "/LOCK", &lock).ok()) return {};
  Status status = cut_lost_end(path_, on_log_);
  const leveldb::Status unlocked = env_.UnlockFile(lock);
  return status.ok() ? to_status(unlocked) : status;
}

Lookup LeveldbEngine::get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
                          std::string* value, Status* error) {
  if (tier == Tier::kCacheOnly) return Lookup::kMiss;
  leveldb::ReadOptions read;
  read.verify_checksums = true;  // a damaged block is an error, never data
  read.snapshot = raw(snapshot);
  const leveldb::Status status = db_->Get(read, prefixed(space, key), value);
  if (status.ok()) return Lookup::kFound;
  if (status.IsNotFound()) return Lookup::kAbsent;
  if (error != nullptr) *error = to_status(status);
  return Lookup::kError;
}

Status LeveldbEngine::do_write(const Batch& batch, Durability durability) {
  return commit(static_cast<const LeveldbBatch&>(batch).raw(), durability == Durability::kSynced);
}

Status LeveldbEngine::commit(leveldb::WriteBatch* batch, bool sync) {
  std::lock_guard lock(write_mutex_);
  if (torn_) return {Status::Code::kNoSpace, "the disk was full and is not known to have room"};
  // A write that fills the memtable waits inside LevelDB for the table of the one before: here,
  // where it can be refused, it waits in good time. (In memory a record takes up to twice its log.)
  const Status hungry(Status::Code::kNoSpace, "a table waits for space");
  if (env_.is_starving() && ledger_.newest_bytes() > memtable_bytes_ / 4) return hungry;
  const uint64_t filled = ledger_.newest_bytes() + batch->ApproximateSize();
  if (filled > memtable_bytes_ / 2 && !env_.wait_for_flush()) return hungry;
  if (Status room = ledger_.make_room(batch->ApproximateSize()); !room.ok()) {
    return note(std::move(room));
  }
  Status status = append(batch, sync);
  torn_ = status.code() == Status::Code::kNoSpace;
  return note(std::move(status));
}

Status LeveldbEngine::append(leveldb::WriteBatch* batch, bool sync) {
  leveldb::WriteOptions options;
  options.sync = sync;
  const Status status = to_status(db_->Write(options, batch));
  if (status.ok()) bytes_written_ += batch->ApproximateSize();
  return status;
}

// Not by LevelDB, which syncs only the newest log.
Status LeveldbEngine::do_sync() {
  return note(ledger_.sync());
}

Status LeveldbEngine::flush() {
  if (health() == Health::kUndecided) return trouble();
  if (env_.is_starving()) return {Status::Code::kNoSpace, "a table waits for space"};
  flush_memtable();
  leveldb::WriteBatch empty;
  return commit(&empty, true);  // an error of the flush shows here
}

// Begins a new log, too.
void LeveldbEngine::flush_memtable() {
  // Compacting any range writes the memtable out first; no key lies behind the last space.
  const std::string nowhere = end_of(kAllSpaces.back());
  const leveldb::Slice at(nowhere);
  db_->CompactRange(&at, &at);
}

Status LeveldbEngine::do_try_resume() {
  const Status still_full(Status::Code::kNoSpace,
                          "there is no room to write out what is in memory");
  std::lock_guard lock(write_mutex_);
  if (env_.is_starving()) return still_full;
  if (!torn_) return ledger_.make_room(0);
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  if (error || space.available < headroom()) return still_full;
  flush_memtable();
  leveldb::WriteBatch empty;
  // Durable before anything is written behind it: the torn log is complete.
  Status status = append(&empty, true);
  if (status.ok()) torn_ = false;
  return status;
}

size_t LeveldbEngine::add_dead(GarbageKind kind, std::span<const uint64_t> ids) {
  std::lock_guard lock(reclaim_mutex_);
  return dead(kind).ids.add(ids);
}

Status LeveldbEngine::reclaim(GarbageKind kind, Reclaimed* out) {
  std::lock_guard lock(reclaim_mutex_);
  *out = {};
  Status status = delete_some(kind, &dead(kind), out);
  out->left = dead(kind).ids.size();
  out->again = out->left > 0;
  if (status.ok()) status = compact_deleted(&out->again);
  return status;
}

// In the order of the ids. One that comes in before the one at hand waits for it to end.
Status LeveldbEngine::delete_some(GarbageKind kind, Dead* dead, Reclaimed* out) {
  constexpr uint64_t kStepBytes = 16 * kMiB;
  const std::span<const Space> spaces = owned_spaces(kind);
  const auto start = std::chrono::steady_clock::now();
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  // One for the step: of dead ids it sees all there ever will be.
  const std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(read));
  uint64_t deleted = 0;
  uint64_t id = dead->from.empty() ? 0 : owner_of(kind, std::string_view(dead->from).substr(1));
  while (deleted < kStepBytes) {
    if (dead->from.empty()) {
      const auto run = dead->ids.next(out->gone.empty() ? 0 : id + 1);
      if (!run) break;
      id = run->first;
      dead->from = prefixed(spaces[dead->space], owned_begin(kind, id));
    }
    const std::string begin = dead->from;
    const std::string end = prefixed(spaces[dead->space], owned_end(kind, id));
    std::string next;
    uint64_t bytes = 0;
    Status status = delete_piece(it.get(), begin, end, &next, &bytes);
    if (!status.ok()) return status;
    const std::string& piece_end = next.empty() ? end : next;
    const uint64_t in_tables = bytes > 0 ? size_of(begin, piece_end) : 0;
    if (in_tables > 0) note_deleted(begin, piece_end, in_tables);
    deleted += bytes;
    pace(deleted, start);
    if (next.empty() && ++dead->space < spaces.size()) {
      next = prefixed(spaces[dead->space], owned_begin(kind, id));
    }
    dead->from = std::move(next);
    if (!dead->from.empty()) continue;
    dead->space = 0;
    out->gone.push_back(id);
  }
  std::ranges::sort(out->gone);
  dead->ids.remove(out->gone);
  return {};
}

// A batch of deletions; `*next` stays empty when they reach the end.
Status LeveldbEngine::delete_piece(leveldb::Iterator* it, const std::string& begin,
                                   const std::string& end, std::string* next, uint64_t* deleted) {
  constexpr size_t kBatchBytes = 64 * 1024;  // small: writes of commands wait behind each batch
  leveldb::WriteBatch batch;
  for (it->Seek(begin); it->Valid() && it->key().compare(end) < 0; it->Next()) {
    if (batch.ApproximateSize() >= kBatchBytes) {
      *next = it->key().ToString();
      break;
    }
    batch.Delete(it->key());
    *deleted += it->key().size() + it->value().size();
  }
  if (!it->status().ok()) return to_status(it->status());
  return *deleted == 0 ? Status() : commit(&batch, false);
}

// Joins what lies near each other: it would be compacted together.
void LeveldbEngine::note_deleted(const std::string& begin, const std::string& end, uint64_t bytes) {
  constexpr size_t kRunsMax = 4096;
  constexpr uint64_t kNearBytes = 2 * kTableBytes;
  const auto near = [this](const std::string& from, const std::string& to) {
    return from[0] == to[0] && (from >= to || size_of(from, to) <= kNearBytes);
  };
  auto run = deleted_.upper_bound(begin);
  if (run != deleted_.begin() && near(std::prev(run)->second.end, begin)) {
    --run;
    run->second.end = std::max(run->second.end, end);
    run->second.bytes += bytes;
  } else {
    // The rest is left to LevelDB's own compactions.
    if (deleted_.size() == kRunsMax) return;
    run = deleted_.insert({begin, {.end = end, .bytes = bytes}}).first;
  }
  const auto next = std::next(run);
  if (next == deleted_.end() || !near(run->second.end, next->first)) return;
  run->second.end = std::max(run->second.end, next->second.end);
  run->second.bytes += next->second.bytes;
  deleted_.erase(next);
}

// LevelDB writes a range once for each level that it passes, and with it the tables at both ends:
// half of all that must be dead.
Status LeveldbEngine::compact_deleted(bool* again) {
  for (auto run = deleted_.begin(); run != deleted_.end(); ++run) {
    const uint64_t size = size_of(run->first, run->second.end);
    if (2 * run->second.bytes < size + 2 * kTableBytes) continue;
    *again = true;
    const std::string begin = run->first;
    const std::string end = run->second.end;
    const uint64_t alive = size - std::min(size, run->second.bytes);
    deleted_.erase(run);
    Status status;
    uint64_t left = size;
    // Again where a compaction of LevelDB's own has taken much of it to a deeper level meanwhile.
    for (int tries = 0; tries < 2 && status.ok() && left > alive + (size - alive) / 8; ++tries) {
      status = compact_run(begin, end);
      left = size_of(begin, end);
      reclaim_rewritten_ += left;
    }
    reclaim_freed_ += size - std::min(size, left);
    return status;
  }
  return {};
}

// Sleeps until deleting `bytes` since `begin` is within the rate.
void LeveldbEngine::pace(uint64_t bytes, std::chrono::steady_clock::time_point begin) const {
  const uint64_t rate = rate_;
  if (rate == 0) return;
  const std::chrono::duration<double> due(static_cast<double>(bytes) / static_cast<double>(rate));
  std::this_thread::sleep_until(
      begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
}

Status LeveldbEngine::compact(Space space, const KeyRange& range) {
  return compact_run(prefixed(space, range.begin),
                     range.end.empty() ? end_of(space) : prefixed(space, range.end));
}

Status LeveldbEngine::compact_run(const std::string& begin, const std::string& end) {
  if (health() == Health::kUndecided) return trouble();
  if (env_.is_starving()) return {Status::Code::kNoSpace, "a table waits for space"};
  const leveldb::Slice begin_slice(begin);
  const leveldb::Slice end_slice(end);
  db_->CompactRange(&begin_slice, &end_slice);
  leveldb::WriteBatch empty;
  return commit(&empty, true);  // an error of the compaction shows here
}

Status LeveldbEngine::checkpoint(const std::string& /*path*/) {
  return {Status::Code::kUnsupported, "LevelDB cannot make a checkpoint"};
}

uint64_t LeveldbEngine::size_of(const std::string& begin, const std::string& end) const {
  const leveldb::Range range(begin, end);
  uint64_t bytes = 0;
  db_->GetApproximateSizes(&range, 1, &bytes);
  return bytes;
}

// A compaction of level 0 takes all its tables, each of a memtable, and those below in their range.
uint64_t LeveldbEngine::headroom() const {
  std::string text;
  uint64_t tables = 0;
  if (db_->GetProperty("leveldb.num-files-at-level0", &text)) {
    std::from_chars(text.data(), text.data() + text.size(), tables);
  }
  return (2 + tables) * memtable_bytes_ + 4 * kTableBytes;
}

EngineStats LeveldbEngine::stats() const {
  EngineStats stats;
  stats.disk_bytes = size_of("", end_of(kAllSpaces.back())) + log_file_bytes(path_);
  stats.cache_bytes = cache_->TotalCharge();
  stats.cache_capacity = cache_capacity_;
  std::string text;
  if (db_->GetProperty("leveldb.approximate-memory-usage", &text)) {
    std::from_chars(text.data(), text.data() + text.size(), stats.memory_bytes);
  }
  stats.memtable_bytes = stats.memory_bytes - std::min(stats.memory_bytes, stats.cache_bytes);
  stats.bytes_written = bytes_written_;
  stats.headroom_bytes = headroom();
  stats.reclaim_rewritten = reclaim_rewritten_;
  stats.reclaim_freed = reclaim_freed_;
  return stats;
}

void LeveldbEngine::set_cache_bytes(uint64_t bytes) {
  log(fmt::format("LevelDB keeps its cache of {} bytes until the next start (asked for {})",
                  cache_capacity_, bytes));
}

}  // namespace ingot::storage
