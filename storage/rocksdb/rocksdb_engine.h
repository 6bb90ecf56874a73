// The RocksDB engine: one column family per space, one log, one cache. See storage/engine.h for
// the contract; the settings are in rocksdb_options.cc.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/engine.h"
#include "storage/log_ledger.h"
#include "storage/rocksdb/reclaim_filter.h"
#include "storage/rocksdb/rocksdb_options.h"

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
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override;
  std::unique_ptr<Snapshot> new_snapshot() override;

  std::unique_ptr<Batch> new_batch() override;
  Status flush() override;

  // rocksdb_maintenance.cc
  Status reclaim(Space space, std::span<const KeyRange> ranges) override;
  Status compact(Space space, const KeyRange& range) override;
  Status checkpoint(const std::string& path) override;
  EngineStats stats() const override;
  void reset_stats() override;
  void set_cache_bytes(uint64_t bytes) override;
  void set_compaction_rate(uint64_t bytes_per_second) override;

 protected:
  Status do_write(const Batch& batch, Durability durability) override;
  Status do_sync() override;
  Status do_try_resume() override;

 private:
  RocksdbEngine(const EngineOptions& options, std::unique_ptr<rocksdb::Env> env);
  Status open_database(const EngineOptions& options);
  Status mend_logs(const std::function<void(const std::string&)>& on_log);
  rocksdb::ColumnFamilyHandle* handle(Space space) const {
    return handles_[static_cast<size_t>(space)];
  }
  Status release_logs();
  Status delete_whole_files(Space space, std::span<const KeyRange> ranges);
  std::vector<FileSpan> deepest_files(Space space) const;
  uint64_t property(const std::string& name) const;                // of the database
  uint64_t property_of_all_spaces(const std::string& name) const;  // summed up
  void log_failure(std::string_view what, const rocksdb::Status& status) const;

  // Constant after open.
  const std::string path_;
  const std::function<void(const std::string&)> on_log_;
  LogLedger ledger_;  // thread safe
  // Used by db_ until it is closed.
  std::unique_ptr<rocksdb::Env> env_;  // null: the machine's own
  std::unique_ptr<rocksdb::Env> log_env_;
  SharedParts shared_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kSpaceCount> handles_ = {};
  rocksdb::ColumnFamilyHandle* default_handle_ = nullptr;  // RocksDB insists on it; empty

  std::array<DeadRanges, kSpaceCount> dead_ranges_;  // thread safe; filled by reclaim() alone
  std::mutex reclaim_mutex_;                         // one reclaim() at a time
  // RocksDB itself found no space, and takes nothing before it has recovered.
  std::atomic<bool> stopped_ = false;
};

}  // namespace ingot::storage
