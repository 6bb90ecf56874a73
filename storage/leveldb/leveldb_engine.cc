// The LevelDB engine: opening, reading, writing, compaction and figures.
#include "storage/leveldb/leveldb_engine.h"

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <ranges>
#include <sstream>

#include "storage/leveldb/leveldb_cursor.h"
#include "storage/leveldb/leveldb_status.h"
#include "storage/leveldb/short_separators.h"
#include "storage/log_end.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kMiB = 1 << 20;

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
    ++records_;
    batch_.Put(prefixed(space, key), leveldb::Slice(value.data(), value.size()));
  }
  void remove(Space space, std::string_view key) override {
    ++records_;
    batch_.Delete(prefixed(space, key));
  }
  void clear() override {
    batch_.Clear();
    records_ = 0;
  }
  uint64_t records() const { return records_; }
  size_t bytes() const override { return batch_.ApproximateSize(); }

  // LevelDB writes the sequence number of the commit into the batch.
  leveldb::WriteBatch* raw() const { return &batch_; }

 private:
  mutable leveldb::WriteBatch batch_;
  uint64_t records_ = 0;
};

constexpr uint64_t kMemtableRecordBytes = 48;  // that a record takes beside what the log has of it

uint64_t disk_bytes(const std::string& path) {
  std::error_code unknown;
  const uint64_t bytes = std::filesystem::space(path, unknown).capacity;
  return unknown ? std::numeric_limits<uint64_t>::max() : bytes;
}
// Of the memory number an eighth each for two memtables, a quarter for the filters and indexes
// of open tables, the rest for blocks. And a small part of the disk, where level 0 has a dozen.
uint64_t memtable_bytes(uint64_t cache_bytes, uint64_t disk_bytes) {
  return std::clamp<uint64_t>(std::min(cache_bytes / 8, disk_bytes / 128), kMiB, 64 * kMiB);
}
// LevelDB rewrites up to 25 tables at a time, which take as much of the disk before they give
// anything back: a small part of it.
uint64_t table_bytes(uint64_t disk_bytes) {
  return std::clamp<uint64_t>(disk_bytes / 512, kMiB, 4 * kMiB);
}
// For the next opening: a memtable and a manifest.
uint64_t reserve_bytes(uint64_t memtable_bytes) {
  return 2 * memtable_bytes + kMiB;
}
// No more than a quarter of what the process may open, either: the others are for clients, too.
int open_files_max(uint64_t cache_bytes) {
  constexpr uint64_t kBytesPerTable = 96 * 1024;  // filter and index of 4 MB of small records
  constexpr uint64_t kLeast = 64;                 // LevelDB takes no less
  rlimit files{};
  const uint64_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / 4 : kLeast;
  return static_cast<int>(std::clamp<uint64_t>(cache_bytes / 4 / kBytesPerTable, kLeast,
                                               std::clamp<uint64_t>(most, kLeast, 10'000)));
}

}  // namespace

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
      disk_(disk),
      path_(options.path),
      cache_capacity_(options.cache_bytes),
      memtable_bytes_(memtable_bytes(options.cache_bytes, disk_bytes(options.path))),
      table_bytes_(table_bytes(disk_bytes(options.path))),
      on_log_(options.on_log),
      ledger_(options.path),
      env_(disk, &ledger_, reserve_bytes(memtable_bytes_),
           [this] {
             (void)note({Status::Code::kNoSpace, "a table waits for space"});
           }),
      garbage_(&env_, &reads_, options.path),
      dead_collections_{.ids = DeadIds(std::max(kMiB, options.cache_bytes / 16)), .from = {}},
      dead_keyspaces_{.ids = DeadIds(kMiB), .from = {}},
      rate_(options.compaction_rate) {}

LeveldbEngine::~LeveldbEngine() {
  interrupt();
}

void LeveldbEngine::interrupt() {
  env_.set_patient(false);
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
  db_options.comparator = short_separators();
  db_options.env = &env_;
  db_options.create_if_missing = true;
  // A log that is damaged before its end refuses to open rather than dropping what follows.
  db_options.paranoid_checks = true;
  db_options.write_buffer_size = memtable_bytes_;
  db_options.max_open_files = open_files_max(options.cache_bytes);
  db_options.block_cache = cache_.get();
  db_options.max_file_size = table_bytes_;
  db_options.compression =
      compression == "none" ? leveldb::kNoCompression : leveldb::kSnappyCompression;
  db_options.filter_policy = filter_.get();

  if (Status status = mend_logs(); !status.ok()) return status;
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(db_options, path_, &db);
  if (!status.ok()) return to_open_status(status, path_);
  db_.reset(db);
  env_.set_patient(true);
  if (Status marking = ledger_.begin_marking(); !marking.ok()) return marking;
  mark_spaces();
  return {};
}

// A cursor that comes to the end of its space ends there, instead of passing over all that was
// removed from the next one. Where they cannot be written that takes longer, and no more.
void LeveldbEngine::mark_spaces() {
  LeveldbBatch marks;
  std::string value;
  for (const Space space : kAllSpaces) {
    if (db_->Get({}, prefixed(space, {}), &value).IsNotFound()) marks.put(space, {}, kSpaceMark);
  }
  if (marks.bytes() > 0) (void)write(marks, Durability::kBuffered);
}

// Whoever else has the directory keeps his logs: opening it will say so.
Status LeveldbEngine::mend_logs() {
  leveldb::FileLock* lock = nullptr;
  if (!env_.LockFile(path_ + "/LOCK", &lock).ok()) return {};
  Status status = cut_lost_end(path_, FileForm::kLeveldb, on_log_);
  const leveldb::Status unlocked = env_.UnlockFile(lock);
  return status.ok() ? to_status(unlocked) : status;
}

std::string LeveldbEngine::version() const {
  return fmt::format("{}.{}", leveldb::kMajorVersion, leveldb::kMinorVersion);
}

Lookup LeveldbEngine::get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
                          std::string* value, Status* error) {
  if (tier == Tier::kCacheOnly) return Lookup::kMiss;
  leveldb::ReadOptions read;
  read.verify_checksums = true;  // a damaged block is an error, never data
  read.snapshot = raw(snapshot);
  const ReadEpochs::Read counted(&reads_);
  const leveldb::Status status = db_->Get(read, prefixed(space, key), value);
  const bool is_mark = status.ok() && key.empty() && *value == kSpaceMark;
  if (status.IsNotFound() || is_mark) return Lookup::kAbsent;
  if (status.ok()) return Lookup::kFound;
  if (error != nullptr) *error = to_status(status);
  return Lookup::kError;
}

std::unique_ptr<Cursor> LeveldbEngine::new_cursor(Space space, const CursorOptions& options) {
  return make_leveldb_cursor(db_.get(), &reads_, space, raw(options.snapshot), options);
}

std::unique_ptr<Snapshot> LeveldbEngine::new_snapshot() {
  return std::make_unique<LeveldbSnapshot>(db_.get());
}

std::unique_ptr<Batch> LeveldbEngine::new_batch() {
  return std::make_unique<LeveldbBatch>();
}

Status LeveldbEngine::do_write(const Batch& batch, Durability durability) {
  const auto& changes = static_cast<const LeveldbBatch&>(batch);
  return commit(changes.raw(), changes.records(), durability == Durability::kSynced);
}

Status LeveldbEngine::commit(leveldb::WriteBatch* batch, uint64_t records, bool sync) {
  std::lock_guard lock(write_mutex_);
  if (torn_) return {Status::Code::kNoSpace, "the disk was full and is not known to have room"};
  // A write that fills the memtable waits inside LevelDB for the table of the one before: here,
  // where it can be refused, it waits in good time.
  const Status hungry(Status::Code::kNoSpace, "a table waits for space");
  const uint64_t bytes = batch->ApproximateSize();
  const uint64_t logged = ledger_.newest_bytes();
  if (logged < logged_) records_ = 0;  // another log, and so another memtable
  logged_ = logged;
  records_ += records;
  const uint64_t filled = logged + bytes + kMemtableRecordBytes * records_;
  if (filled > memtable_bytes_ / 2 && (env_.is_starving() || !env_.wait_for_flush())) {
    return hungry;
  }
  if (Status room = ledger_.make_room(bytes); !room.ok()) return note(std::move(room));
  Status status = append(batch, sync);
  ledger_.release_room(bytes);
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
  return commit(&empty, 0, true);  // an error of the flush shows here
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
  if (!torn_) return ledger_.probe_room();
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  if (error || space.available < flush_bytes()) return still_full;
  flush_memtable();
  leveldb::WriteBatch empty;
  // Durable before anything is written behind it: the torn log is complete.
  Status status = append(&empty, true);
  if (status.ok()) torn_ = false;
  return status;
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
  return commit(&empty, 0, true);  // an error of the compaction shows here
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

uint64_t LeveldbEngine::level0_tables() const {
  std::string text;
  uint64_t tables = 0;
  if (db_->GetProperty("leveldb.num-files-at-level0", &text)) {
    std::from_chars(text.data(), text.data() + text.size(), tables);
  }
  return tables;
}

// Of what is in memory, and of level 0, all of whose tables are compacted at once.
uint64_t LeveldbEngine::flush_bytes() const {
  return (2 + level0_tables()) * memtable_bytes_ + 4 * table_bytes_;
}

// With four more tables every write would wait until level 0 is merged, which takes seconds.
bool LeveldbEngine::lags() const {
  constexpr uint64_t kLongLevel0 = 8;
  return env_.is_flushing() || level0_tables() >= kLongLevel0;
}

// A compaction writes all of its output before its input goes. One that finds no space half way
// cannot be given up, and so nothing else would ever make room.
uint64_t LeveldbEngine::compaction_bytes() const {
  const uint64_t all = size_of("", end_of(kAllSpaces.back()));
  return std::min(all, std::max(upper_bytes(), kCompactedTablesMax * table_bytes_));
}

// Level 0 is merged with all of level 1, which outgrows its 10 MB while much is written.
uint64_t LeveldbEngine::upper_bytes() const {
  uint64_t upper = 0;
  for (const EngineLevel& level : levels() | std::views::take(2)) upper += level.bytes;
  return upper;
}

// What tables leave free, the memtables, and what a compaction writes.
uint64_t LeveldbEngine::room_bytes(uint64_t written) const {
  return reserve_bytes(memtable_bytes_) + 2 * memtable_bytes_ + written;
}

uint64_t LeveldbEngine::memory_bytes() const {
  uint64_t bytes = 0;
  std::string text;
  if (db_->GetProperty("leveldb.approximate-memory-usage", &text)) {
    std::from_chars(text.data(), text.data() + text.size(), bytes);
  }
  return bytes;
}

EngineStats LeveldbEngine::stats() const {
  EngineStats stats;
  stats.disk_bytes = size_of("", end_of(kAllSpaces.back())) + ledger_.bytes();
  stats.cache_bytes = cache_->TotalCharge();
  stats.cache_capacity = cache_capacity_;
  stats.memory_bytes = memory_bytes();
  stats.memtable_bytes = stats.memory_bytes - std::min(stats.memory_bytes, stats.cache_bytes);
  stats.bytes_written = bytes_written_;
  stats.stall_micros = ledger_.waited_micros();
  stats.make_room_bytes = room_bytes(upper_bytes());
  stats.makes_room = makes_room_;
  // When growth is refused there has to be enough left to write down what is deleted then.
  const uint64_t room = room_bytes(compaction_bytes());
  stats.headroom_bytes = room + room / 2;
  stats.reclaim_rewritten = reclaim_rewritten_;
  stats.reclaim_freed = reclaim_freed_;
  return stats;
}

// LevelDB tells sizes in whole megabytes, of the levels that have anything.
std::vector<EngineLevel> LeveldbEngine::levels() const {
  std::string text;
  if (!db_->GetProperty("leveldb.stats", &text)) return {};
  std::vector<EngineLevel> levels;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    size_t level = 0;
    uint64_t files = 0;
    uint64_t megabytes = 0;
    constexpr size_t kLevelsMax = 16;
    if (!(words >> level >> files >> megabytes) || level >= kLevelsMax) continue;  // a heading
    levels.resize(std::max(levels.size(), level + 1));
    levels[level] = {.files = files, .bytes = megabytes << 20};
  }
  return levels;
}

void LeveldbEngine::set_cache_bytes(uint64_t bytes) {
  log(fmt::format("LevelDB keeps its cache of {} bytes until the next start (asked for {})",
                  cache_capacity_, bytes));
}

}  // namespace ingot::storage
