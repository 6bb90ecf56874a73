// The RocksDB engine: opening, reads and writes.
#include "storage/rocksdb/rocksdb_engine.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>

#include "storage/durable_file.h"
#include "storage/log_end.h"
#include "storage/no_wait_reads.h"
#include "storage/rocksdb/fault_file_system.h"
#include "storage/rocksdb/log_file_system.h"
#include "storage/rocksdb/reclaim_filter.h"
#include "storage/rocksdb/rocksdb_cursor.h"
#include "storage/rocksdb/rocksdb_listener.h"
#include "storage/rocksdb/rocksdb_status.h"
#include "storage/rocksdb/table_file_system.h"

namespace ingot::storage {
namespace {

class RocksdbSnapshot : public Snapshot {
 public:
  explicit RocksdbSnapshot(rocksdb::DB* db) : db_(db), snapshot_(db->GetSnapshot()) {}
  ~RocksdbSnapshot() override { db_->ReleaseSnapshot(snapshot_); }
  const rocksdb::Snapshot* raw() const { return snapshot_; }

 private:
  rocksdb::DB* const db_;
  const rocksdb::Snapshot* const snapshot_;
};

constexpr size_t kMiB = 1 << 20;

// A share that is not worth a place in the memory plan: a million dead ids in 100 MB.
size_t dead_bytes_max(uint64_t cache_bytes) {
  return std::max<size_t>(kMiB, cache_bytes / 16);
}

const rocksdb::Snapshot* raw(const Snapshot* snapshot) {
  return snapshot == nullptr ? nullptr : static_cast<const RocksdbSnapshot*>(snapshot)->raw();
}

// A batch that fits into the processor's second cache beside what is looked at for each key.
constexpr size_t kFetchedBytesMax = 64 << 10;

class RocksdbBatch : public Batch {
 public:
  explicit RocksdbBatch(const std::array<rocksdb::ColumnFamilyHandle*, kSpaceCount>& handles)
      : handles_(handles) {}

  // These fail for a key or value above 4 GB; then the whole batch does.
  void put(Space space, std::string_view key, std::string_view value) override {
    note(batch_.Put(handles_[static_cast<size_t>(space)], key, value));
    name(space, key);
  }
  void remove(Space space, std::string_view key) override {
    note(batch_.Delete(handles_[static_cast<size_t>(space)], key));
    name(space, key);
  }
  void clear() override {
    batch_.Clear();
    status_ = rocksdb::Status();
    for (std::vector<Name>& names : names_) names.clear();
    name_bytes_.clear();
  }
  size_t bytes() const override { return batch_.GetDataSize(); }

  // RocksDB writes the sequence number of the commit into the batch.
  rocksdb::WriteBatch* raw() const { return &batch_; }
  const rocksdb::Status& status() const { return status_; }
  // Those of the first keys of the batch that are in this space, each with room for a trailer.
  std::vector<std::string_view> internal_keys(Space space) const {
    const std::vector<Name>& names = names_[static_cast<size_t>(space)];
    std::vector<std::string_view> keys;
    keys.reserve(names.size());
    for (const Name& name : names) keys.push_back(view(name));
    return keys;
  }

 private:
  static constexpr size_t kTrailerBytes = 8;
  struct Name {
    uint32_t begin, bytes;  // in name_bytes_, without the trailer
  };
  std::string_view view(const Name& name) const {
    return std::string_view(name_bytes_).substr(name.begin, name.bytes + kTrailerBytes);
  }
  void name(Space space, std::string_view key) {
    if (name_bytes_.size() + key.size() > kFetchedBytesMax) return;
    std::vector<Name>& names = names_[static_cast<size_t>(space)];
    if (!names.empty() && is_next_to(view(names.back()), key)) return;
    names.push_back({.begin = static_cast<uint32_t>(name_bytes_.size()),
                     .bytes = static_cast<uint32_t>(key.size())});
    name_bytes_.append(key).append(kTrailerBytes, '\0');
  }
  // It will stand in the same place, or the next one: elements of a list, entries of a stream.
  static bool is_next_to(std::string_view internal_key, std::string_view key) {
    constexpr size_t kNumberBytes = 8;
    constexpr uint64_t kNear = 1 << 20;  // the labels of a list are so far apart
    internal_key.remove_suffix(kTrailerBytes);
    if (internal_key.size() != key.size() || key.size() < kNumberBytes) return false;
    const size_t head = key.size() - kNumberBytes;
    return internal_key.substr(0, head) == key.substr(0, head) &&
           read_be64(key.substr(head)) - read_be64(internal_key.substr(head)) <= kNear;
  }
  void note(rocksdb::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  rocksdb::Status status_;
  const std::array<rocksdb::ColumnFamilyHandle*, kSpaceCount>& handles_;
  mutable rocksdb::WriteBatch batch_;
  std::array<std::vector<Name>, kSpaceCount> names_;
  std::string name_bytes_;
};

rocksdb::ReadOptions read_options(const Snapshot* snapshot, Tier tier) {
  rocksdb::ReadOptions read;
  read.snapshot = raw(snapshot);
  read.read_tier = read_tier(tier);
  return read;
}

}  // namespace

OpenResult open_rocksdb(const EngineOptions& options) {
  return RocksdbEngine::open(
      options, options.fault_file.empty() ? nullptr : make_fault_env(options.fault_file));
}

OpenResult RocksdbEngine::open(const EngineOptions& options, std::unique_ptr<rocksdb::Env> env) {
  if (Status status = check_options(options); !status.ok()) return {nullptr, status};
  std::error_code error;
  std::filesystem::create_directories(options.path, error);
  if (error) {
    return {nullptr, Status(Status::Code::kIo, fmt::format("cannot create the directory '{}': {}",
                                                           options.path, error.message()))};
  }
  std::unique_ptr<RocksdbEngine> engine(new RocksdbEngine(options, std::move(env)));
  if (Status status = engine->open_database(options); !status.ok()) return {nullptr, status};
  return {std::move(engine), Status()};
}

RocksdbEngine::RocksdbEngine(const EngineOptions& options, std::unique_ptr<rocksdb::Env> env)
    : Engine(options.on_background_error),
      path_(options.path),
      on_log_(options.on_log),
      ledger_(options.path),
      gate_(std::make_shared<FlushGate>([this] { wake_flush_waiters(); })),
      room_{.reserve_bytes = [this] { return shared_.memtables->memory_usage() + kReserveBytes; }},
      env_(std::move(env)),
      log_env_(make_gated_env(
          make_log_env(env_ != nullptr ? env_.get() : rocksdb::Env::Default(), &ledger_, &room_),
          gate_)),
      shared_(make_shared_parts(options)),
      run_(std::random_device{}() | uint64_t{std::random_device{}()} << 32),
      dead_{DeadIds(dead_bytes_max(options.cache_bytes)), DeadIds(kMiB)},
      flushed_at_(std::chrono::steady_clock::now()) {}

Status RocksdbEngine::open_database(const EngineOptions& options) {
  rocksdb::DBOptions db_options = make_db_options(options, shared_);
  db_options.env = log_env_.get();
  // Its own log file would stand on the disk that fills up, and RocksDB aborts when a line of it
  // cannot be written.
  db_options.info_log = make_rocksdb_logger(options);
  RocksdbNews news;
  news.on_stopped = [this](const Status& status) {
    has_error_ = true;
    stopped_ = true;
    // Nothing recovers from any other error; whoever waits for a flush must hear of it.
    if (status.code() == Status::Code::kNoSpace) gate_->close();
    (void)note(status);
  };
  news.on_recovered = [this] { has_error_ = false; };
  news.on_flush_begun = [this] { gate_->has_begun(); };
  news.on_compacted = [this](const std::string& name, bool found_no_room) {
    for (const Space space : kAllSpaces) {
      if (space_name(space) != name) continue;
      found_no_room_at_[static_cast<size_t>(space)] = found_no_room
                                                          ? std::chrono::steady_clock::now()
                                                          : std::chrono::steady_clock::time_point();
    }
  };
  db_options.listeners.push_back(make_rocksdb_listener(options, std::move(news)));

  if (Status status = mend_logs(options.on_log); !status.ok()) return status;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(kSpaceCount + 1);
  for (Space space : kAllSpaces) {
    families.emplace_back(std::string(space_name(space)),
                          make_space_options(space, options, shared_));
    memtables_[static_cast<size_t>(space)] = std::make_shared<TreeMemtables>();
    families.back().options.memtable_factory = memtables_[static_cast<size_t>(space)];
  }
  for (GarbageKind kind : {GarbageKind::kCollection, GarbageKind::kKeyspace}) {
    for (Space space : owned_spaces(kind)) {
      rocksdb::ColumnFamilyOptions& cf = families[static_cast<size_t>(space)].options;
      cf.compaction_filter_factory = make_reclaim_filter_factory(kind, &dead(kind));
      cf.table_properties_collector_factories.push_back(make_table_ids_factory(kind, run_));
    }
  }
  rocksdb::ColumnFamilyOptions unused;
  // RocksDB recovers from a full disk only once the largest memtable of all would fit, 64 MB if
  // nothing else is said.
  unused.write_buffer_size = 64 << 10;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, unused);

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(db_options, path_, families, &handles, &db);
  if (!status.ok()) return to_open_status(status, path_);
  db_.reset(db);
  std::copy_n(handles.begin(), kSpaceCount, handles_.begin());
  default_handle_ = handles.back();
  set_compaction_rate(options.compaction_rate);  // recovery was to be done soon
  warm_up_.emplace(*db_, handles_,
                   static_cast<uint64_t>(share_of_filters(options.cache_bytes, shared_.disk_bytes) *
                                         static_cast<double>(options.cache_bytes)));
  return ledger_.begin_marking();
}

// Whoever else has the directory keeps his logs: opening it will say so.
Status RocksdbEngine::mend_logs(const std::function<void(const std::string&)>& on_log) {
  rocksdb::FileLock* lock = nullptr;
  if (!log_env_->LockFile(path_ + "/LOCK", &lock).ok()) return {};
  Status status = cut_lost_end(path_, FileForm::kRocksdb, on_log);
  const rocksdb::Status unlocked = log_env_->UnlockFile(lock);
  return status.ok() ? to_status(unlocked) : status;
}

RocksdbEngine::~RocksdbEngine() {
  if (db_ == nullptr) return;
  warm_up_.reset();
  gate_->open();
  const char* const unclean = "RocksDB did not close cleanly";
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    log_failure(unclean, db_->DestroyColumnFamilyHandle(space));
  }
  log_failure(unclean, db_->DestroyColumnFamilyHandle(default_handle_));
  log_failure(unclean, db_->Close());
}

std::string RocksdbEngine::version() const {
  return rocksdb::GetRocksVersionAsString();
}

Capabilities RocksdbEngine::capabilities() const {
  return {.probe = true, .checkpoint = true, .ring = true};
}

Lookup RocksdbEngine::get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
                          std::string* value, Status* error) {
  const NoWaitReads::ForTier reads(tier);
  const rocksdb::Status status = db_->Get(read_options(snapshot, tier), handle(space), key, value);
  return to_lookup(status, tier, value->empty(), error);
}

void RocksdbEngine::get_many(Space space, std::span<const std::string_view> keys,
                             std::span<std::string> values, std::span<Lookup> found) {
  const NoWaitReads::Refusal refusal;
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> pinned(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  rocksdb::ReadOptions read = read_options(nullptr, Tier::kCacheOnly);
  read.value_size_soft_limit = 1 << 20;
  db_->MultiGet(read, handle(space), keys.size(), slices.data(), pinned.data(), statuses.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) values[i].assign(pinned[i].data(), pinned[i].size());
    found[i] = to_lookup(statuses[i], Tier::kCacheOnly, pinned[i].empty(), nullptr);
    if (found[i] == Lookup::kError) found[i] = Lookup::kMiss;
  }
}

std::unique_ptr<Cursor> RocksdbEngine::new_cursor(Space space, const CursorOptions& options) {
  return make_rocksdb_cursor(db_.get(), handle(space), raw(options.snapshot), options);
}

std::unique_ptr<Snapshot> RocksdbEngine::new_snapshot() {
  return std::make_unique<RocksdbSnapshot>(db_.get());
}

std::unique_ptr<Batch> RocksdbEngine::new_batch() {
  return std::make_unique<RocksdbBatch>(handles_);
}

Status RocksdbEngine::do_write(const Batch& batch, Durability durability) {
  const auto& changes = static_cast<const RocksdbBatch&>(batch);
  if (!changes.status().ok()) return to_status(changes.status());
  if (stopped_) return stopped();
  // A failed append stops RocksDB for every write until it has recovered, which takes space; to be
  // refused before costs nothing.
  if (may_begin_log()) {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    rocksdb::WriteBatch nothing;
    if (Status status = write_batch(unlogged, &nothing); !status.ok())
      return note(std::move(status));
  }
  const uint64_t bytes = changes.bytes();
  if (Status room = ledger_.make_room(bytes); !room.ok()) return note(std::move(room));
  rocksdb::WriteOptions options;
  // Only this makes a batch visible after its sync; a sync() would show it before.
  options.sync = durability == Durability::kSynced;
  for (const Space space : {Space::kMeta, Space::kData, Space::kOrder}) {
    const std::vector<std::string_view> keys = changes.internal_keys(space);
    if (keys.size() > 1) memtables_[static_cast<size_t>(space)]->prefetch(keys);
  }
  Status status = write_batch(options, changes.raw());
  ledger_.release_room(bytes);
  return note(std::move(status));
}

// RocksDB begins a log where it puts a full memtable aside: at the start of the next write, be that
// an empty one.
bool RocksdbEngine::may_begin_log() const {
  const MemoryPlan plan = plan_memory(shared_.cache->GetCapacity(), shared_.disk_bytes);
  if (shared_.memtables->ShouldFlush() || ledger_.bytes() > plan.wal_max) return true;
  // It is full somewhere in its last block, which is an eighth of it, and 1 MB at most.
  const uint64_t nearly_full = plan.memtable - std::min<uint64_t>(plan.memtable / 8, kMiB);
  return std::ranges::any_of(handles_, [&](rocksdb::ColumnFamilyHandle* space) {
    uint64_t bytes = 0;
    return db_->GetIntProperty(space, rocksdb::DB::Properties::kCurSizeActiveMemTable, &bytes) &&
           bytes >= nearly_full;
  });
}

Status RocksdbEngine::write_batch(const rocksdb::WriteOptions& options,
                                  rocksdb::WriteBatch* batch) {
  gate_->begin_write();
  Status status = to_status(db_->Write(options, batch));
  gate_->end_write();
  if (status.code() == Status::Code::kNoSpace) {
    // Its listener may have said that it recovered behind an error that came later.
    has_error_ = true;
    stopped_ = true;
    if (is_stuck_behind_log()) status = stuck();
  }
  return status;
}

// One memtable that waits is being flushed. RocksDB slows writes down when there are
// kMemtablesPerSpace - 1, and what others write meanwhile needs one of them.
bool RocksdbEngine::lags() const {
  if (ledger_.lags()) return true;
  return std::ranges::any_of(handles_, [this](rocksdb::ColumnFamilyHandle* space) {
    uint64_t waiting = 0;
    return db_->GetIntProperty(space, rocksdb::DB::Properties::kNumImmutableMemTable, &waiting) &&
           waiting >= kMemtablesPerSpace - 2;
  });
}

// Not by RocksDB, which aborts when a log is synced that an append failed on meanwhile.
Status RocksdbEngine::do_sync() {
  return note(ledger_.sync());
}

Status RocksdbEngine::flush() {
  if (stopped_) return stopped();
  const std::array epochs = {dead_[0].newest(), dead_[1].newest()};
  rocksdb::FlushOptions at_once;
  at_once.allow_write_stall = true;  // or it waits while level 0 is long, which may be for ever
  Status status = to_status(db_->Flush(at_once, {handles_.begin(), handles_.end()}));
  if (status.ok()) status = wait_until_flushed();
  if (status.ok()) {
    std::lock_guard lock(flushed_mutex_);
    for (size_t i = 0; i < epochs.size(); ++i) flushed_[i] = std::max(flushed_[i], epochs[i]);
    flushed_at_ = std::chrono::steady_clock::now();
  }
  return status;
}

void RocksdbEngine::log_failure(std::string_view what, const rocksdb::Status& status) const {
  if (!status.ok() && on_log_) on_log_(fmt::format("{}: {}", what, status.ToString()));
}

}  // namespace ingot::storage
