// The RocksDB engine: one column family per space, one log, one cache. See storage/engine.h for
// the contract; the settings are in rocksdb_options.cc.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/dead_ids.h"
#include "storage/engine.h"
#include "storage/log_ledger.h"
#include "storage/rocksdb/disk_room.h"
#include "storage/rocksdb/flush_gate.h"
#include "storage/rocksdb/rocksdb_options.h"
#include "storage/rocksdb/tree_memtable.h"
#include "storage/rocksdb/warm_up.h"

namespace ingot::storage {

class RocksdbEngine : public Engine {
 public:
  // `env` may be null: the machine's own files.
  static OpenResult open(const EngineOptions& options, std::unique_ptr<rocksdb::Env> env);
  ~RocksdbEngine() override;

  std::string_view name() const override { return "rocksdb"; }
  std::string version() const override;
  Capabilities capabilities() const override;

  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override;
  void get_many(Space space, std::span<const std::string_view> keys, std::span<std::string> values,
                std::span<Lookup> found) override;
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override;
  std::unique_ptr<Snapshot> new_snapshot() override;

  std::unique_ptr<Batch> new_batch() override;
  Status flush() override;

  // rocksdb_maintenance.cc
  Status compact(Space space, const KeyRange& range) override;
  Status compact_all(std::atomic<bool>& stop) override;
  Status checkpoint(const std::string& path) override;
  EngineStats stats() const override;
  uint64_t memory_bytes() const override;
  std::vector<EngineLevel> levels() const override;
  void reset_stats() override;
  void set_cache_bytes(uint64_t bytes) override;
  void set_compaction_rate(uint64_t bytes_per_second) override;
  void look_at_space() override;
  void interrupt() override;

  // rocksdb_reclaim.cc
  size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) override;
  Status reclaim(GarbageKind kind, Reclaimed* out) override;
  Status make_room() override;

 protected:
  Status do_write(const Batch& batch, Durability durability) override;
  Status do_sync() override;
  Status do_try_resume() override;
  bool lags() const override;

 private:
  struct Table;
  RocksdbEngine(const EngineOptions& options, std::unique_ptr<rocksdb::Env> env);
  Status open_database(const EngineOptions& options);
  Status mend_logs(const std::function<void(const std::string&)>& on_log);
  rocksdb::ColumnFamilyHandle* handle(Space space) const {
    return handles_[static_cast<size_t>(space)];
  }
  static size_t dead_index(GarbageKind kind) { return kind == GarbageKind::kCollection ? 0 : 1; }
  DeadIds& dead(GarbageKind kind) { return dead_[dead_index(kind)]; }
  bool may_begin_log() const;
  Status write_batch(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);

  // rocksdb_recovery.cc
  Status stopped() const;  // the answer while stopped_
  static Status stuck();
  bool is_stuck_behind_log() const;
  // Waits for the memtables that have been put aside, or until RocksDB is stopped.
  Status wait_until_flushed() const;
  void wake_flush_waiters();
  Status probe_room_to_recover() const;
  // What Resume() says; ShutdownInProgress when it would have waited for ever, and then RocksDB
  // does no background work any more.
  rocksdb::Status resume();
  // Before a change of the manifest, and when it is over. By files_mutex_.
  rocksdb::Status keep_files();
  void let_files_go(const rocksdb::Status& changed);

  // rocksdb_maintenance.cc
  bool lacks_room(Space space) const;
  uint64_t largest_compaction() const;
  std::unordered_map<std::string, std::string> level0_triggers() const;
  void set_level0_triggers();
  void set_options(const std::unordered_map<std::string, std::string>& options);  // of all spaces

  // rocksdb_reclaim.cc
  Status flush_dead();
  uint32_t flushed_epoch(GarbageKind kind) const;
  Status list_tables(GarbageKind kind, std::vector<Table>* tables) const;
  Status delete_dead_files(GarbageKind kind, std::vector<Table>& tables);
  Status rewrite_dead_files(const std::vector<Table>& tables, bool* again);
  Status rewrite_level_0(const std::vector<Table>& tables, bool* again);
  Status rewrite(const std::vector<const Table*>& piece, int level, bool* again);
  rocksdb::Status compact_files(const rocksdb::CompactionOptions& options, Space space,
                                const std::vector<std::string>& names, int level,
                                rocksdb::CompactionJobInfo* info);
  bool names_table(const rocksdb::Status& failed) const;

  uint64_t property(const std::string& name) const;                // of the database
  uint64_t property_of_all_spaces(const std::string& name) const;  // summed up
  void log_failure(std::string_view what, const rocksdb::Status& status) const;

  // Constant after open.
  const std::string path_;
  const std::function<void(const std::string&)> on_log_;
  LogLedger ledger_;                       // thread safe
  const std::shared_ptr<FlushGate> gate_;  // thread safe
  // What compactions leave besides room for what is in memory; twice what a recovery needs.
  static constexpr uint64_t kReserveBytes = 8 << 20;
  DiskRoom room_;  // thread safe
  // Used by db_ until it is closed.
  std::unique_ptr<rocksdb::Env> env_;  // null: the machine's own
  std::unique_ptr<rocksdb::Env> log_env_;
  SharedParts shared_;
  const uint64_t run_;           // a number for this open, see reclaim_filter.h
  std::array<DeadIds, 2> dead_;  // thread safe; db_'s compactions ask it
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kSpaceCount> handles_ = {};
  std::array<std::shared_ptr<TreeMemtables>, kSpaceCount> memtables_;
  rocksdb::ColumnFamilyHandle* default_handle_ = nullptr;  // RocksDB insists on it; empty
  std::optional<WarmUp> warm_up_;

  // RocksDB itself found no space, and takes nothing before it has recovered.
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> has_error_ = false;  // it has not yet
  // Level 0 stops no write from the first recovery on: there may be no room to merge it before
  // something is deleted. While compactions find none it does not slow them down either.
  std::atomic<bool> never_stops_writes_ = false;
  std::atomic<bool> lack_room_ = false;
  std::mutex files_mutex_;
  // Changes of the manifest that failed since options were set, or since the last recovery.
  std::atomic<int> keeps_files_ = 0;  // changed by files_mutex_
  int recoveries_ = 0;                // guarded by files_mutex_
  std::atomic<std::chrono::steady_clock::time_point> options_tried_at_{};
  // When the last compaction of a space found no room; the epoch: it did not fail so.
  std::array<std::atomic<std::chrono::steady_clock::time_point>, kSpaceCount> found_no_room_at_{};
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> rewriting_ = false;  // in rewrite(), which a recovery waits for
  mutable std::mutex flushed_mutex_;
  // By flushed_mutex_: ids up to this epoch, of each kind, have nothing in memtables.
  std::array<uint32_t, 2> flushed_ = {};
  std::chrono::steady_clock::time_point flushed_at_;
  std::atomic<uint64_t> reclaim_rewritten_ = 0;  // bytes, counted by reclaim() alone
  std::atomic<uint64_t> reclaim_freed_ = 0;
};

}  // namespace ingot::storage
