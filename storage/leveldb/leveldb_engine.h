// The LevelDB engine: a space is a one-byte key prefix. See storage/engine.h for the contract.
//
// What LevelDB lacks: a cache-only read (every probe is a miss), checkpoints, a compaction filter
// (reclaim() deletes key by key, and compacts only where that is worth it), a cache whose size
// changes while it runs.
#pragma once

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "storage/dead_ids.h"
#include "storage/engine.h"
#include "storage/leveldb/leveldb_files.h"
#include "storage/leveldb/leveldb_garbage.h"
#include "storage/log_ledger.h"

namespace ingot::storage {

class LeveldbEngine : public Engine {
 public:
  static OpenResult open(const EngineOptions& options, Disk* disk);
  ~LeveldbEngine() override;

  std::string_view name() const override { return "leveldb"; }
  std::string version() const override;
  Capabilities capabilities() const override { return {}; }

  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override;
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override;
  std::unique_ptr<Snapshot> new_snapshot() override;
  std::unique_ptr<Batch> new_batch() override;
  Status flush() override;
  Status compact(Space space, const KeyRange& range) override;
  Status compact_all(std::atomic<bool>& stop) override;
  Status checkpoint(const std::string& path) override;
  EngineStats stats() const override;
  uint64_t memory_bytes() const override;
  std::vector<EngineLevel> levels() const override;
  void reset_stats() override {
    bytes_written_ = 0;
    reclaim_rewritten_ = 0;
    reclaim_freed_ = 0;
  }
  void set_cache_bytes(uint64_t bytes) override;
  void set_compaction_rate(uint64_t bytes_per_second) override { rate_ = bytes_per_second; }

  // leveldb_reclaim.cc
  size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) override;
  Status reclaim(GarbageKind kind, Reclaimed* out) override;
  Status make_room() override;
  void look_at_space() override;
  void interrupt() override;

 protected:
  Status do_write(const Batch& batch, Durability durability) override;
  Status do_sync() override;
  Status do_try_resume() override;
  bool lags() const override;

 private:
  LeveldbEngine(const EngineOptions& options, Disk* disk);
  Status open_database(const EngineOptions& options);
  Status mend_logs();
  void mark_spaces();
  Status commit(leveldb::WriteBatch* batch, uint64_t records, bool sync);
  Status append(leveldb::WriteBatch* batch, bool sync);  // under write_mutex_
  void flush_memtable();
  static constexpr uint64_t kCompactedTablesMax = 25;  // that LevelDB expands one to
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
  Status compact_pieces(const std::string& begin, const std::string& end, std::string* done);
  bool has_room_to_compact() const;
  bool has_room_to_compact(const std::string& begin, const std::string& end);
  bool is_mostly_dead(const std::string& begin, const std::string& end, uint64_t bytes_max);
  std::string begin_of_piece(const std::string& end, uint64_t bytes) const;
  std::string end_of_piece(const std::string& begin, uint64_t bytes) const;
  Status compact_run(const std::string& begin, const std::string& end);
  void pace(uint64_t bytes, std::chrono::steady_clock::time_point begin) const;
  uint64_t level0_tables() const;
  // What may be written before anything is freed: by writing out the memtables; by a compaction.
  uint64_t flush_bytes() const;
  uint64_t compaction_bytes() const;
  uint64_t upper_bytes() const;
  uint64_t room_bytes(uint64_t written) const;
  uint64_t size_of(const std::string& begin, const std::string& end) const;
  void log(const std::string& line) const {
    if (on_log_) on_log_(line);
  }

  // Constant after open; the first two outlive db_, which uses them.
  const std::unique_ptr<const leveldb::FilterPolicy> filter_;
  const std::unique_ptr<leveldb::Cache> cache_;
  Disk* const disk_;
  const std::string path_;
  const uint64_t cache_capacity_;
  const uint64_t memtable_bytes_;
  const uint64_t table_bytes_;
  const std::function<void(const std::string&)> on_log_;
  LogLedger ledger_;  // thread safe
  LeveldbEnv env_;
  ReadEpochs reads_;
  LeveldbGarbage garbage_;  // of the thread of look_at_space()
  std::unique_ptr<leveldb::DB> db_;

  // Held for each write, which LevelDB takes one at a time anyway.
  std::mutex write_mutex_;
  // Guarded by write_mutex_: a write failed for lack of space. LevelDB would go on in the same log,
  // at an offset that is not the file's any more.
  bool torn_ = false;
  // Guarded by write_mutex_: the records in the memtable, and the log's bytes when that was
  // counted.
  uint64_t records_ = 0;
  uint64_t logged_ = 0;

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
  std::string room_from_;  // where make_room() goes on; empty: at the first key

  std::atomic<bool> makes_room_ = false;  // room_from_ is not empty
  std::atomic<uint64_t> reclaim_rewritten_ = 0;
  std::atomic<uint64_t> reclaim_freed_ = 0;
  std::atomic<uint64_t> rate_;  // bytes a second that reclaim() may delete; 0: no limit
  std::atomic<uint64_t> bytes_written_ = 0;  // counted by any thread
};

// `disk` must outlive the engine.
OpenResult open_leveldb_on(const EngineOptions& options, Disk* disk);

}  // namespace ingot::storage
