// An ordered key-value engine: what Ingot asks of RocksDB, LevelDB and the in-memory test engine.
//
// Threads: every method of Engine may be called by any thread at any time after open and before
// the destructor, unless it says otherwise. A Cursor and a Batch belong to one thread at a time.
// Bytes: keys and values are binary safe; keys order by memcmp. No stored value is empty (callers
// begin each with a header or flag byte), because an engine's cache-only lookup may answer "found,
// empty" for what it did not look at: an empty value is treated as a miss.
// Failure: nothing here throws. A method that returns a Status or Lookup leaves its outputs
// unspecified unless it succeeded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/codec.h"
#include "storage/spaces.h"
#include "storage/status.h"

namespace ingot::storage {

// How far a read may go.
enum class Tier : uint8_t {
  kCacheOnly,  // memtable and block cache; never waits for the disk. Without Capabilities::probe
               // every such read is a miss.
  kDisk,
};

enum class Lookup : uint8_t {
  kFound,
  kAbsent,  // certain: the key does not exist
  kMiss,    // only with Tier::kCacheOnly: memory alone cannot tell
  kError,   // the disk failed or the bytes are corrupt; see the Status output
};

// What a commit waits for.
enum class Durability : uint8_t {
  kBuffered,  // handed to the operating system: survives kill -9, not a power loss
  kSynced,    // on stable storage before it becomes visible to any reader
};

// What the disk below lets the engine do: the one answer for everybody who writes or syncs.
enum class Health : uint8_t {
  kHealthy,
  kNoSpace,    // something found no space: small writes may still go, try_resume() asks again
  kUndecided,  // nobody knows what the disk has of the last write: none is taken until a restart
};

// A consistent state of the whole engine, as of its creation. Release it soon: it keeps old
// versions alive. Any thread may use it and destroy it; it must not outlive its Engine.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
};

// A position in one space between two bounds, in key order. Starts invalid: call a seek first.
// key() and value() stay valid until the next move.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual bool valid() const = 0;
  virtual void seek(std::string_view key) = 0;           // first key >= `key` within the bounds
  virtual void seek_for_prev(std::string_view key) = 0;  // last key <= `key` within the bounds
  virtual void next() = 0;                               // requires valid()
  virtual void prev() = 0;                               // requires valid()
  virtual std::string_view key() const = 0;              // requires valid()
  virtual std::string_view value() const = 0;            // requires valid()
  // kFound while nothing went wrong; kMiss when a cache-only cursor needed the disk; kError when
  // the disk failed. Ask when valid() turns false: it tells the end from a failure.
  virtual Lookup outcome() const = 0;
  virtual Status status() const = 0;
  // Of a cursor that can number the records within its bounds: how many there are. go() moves to
  // the one with that number, which is less.
  virtual std::optional<size_t> size() const { return std::nullopt; }
  virtual void go(size_t) {}
};

struct CursorOptions {
  const Snapshot* snapshot = nullptr;  // null: the state when the cursor is made
  std::string lower;                   // inclusive; empty: from the beginning
  std::string upper;                   // exclusive; empty: to the end
  Tier tier = Tier::kDisk;
  bool fill_cache = true;  // false for long scans that would sweep the cache
  // An engine may end a move with kMiss that passes over more records that were removed; 0: never.
  uint64_t skipped_max = 0;
};

// Changes that become visible together or not at all. The last change of a key wins.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual void put(Space space, std::string_view key, std::string_view value) = 0;
  virtual void remove(Space space, std::string_view key) = 0;
  virtual void clear() = 0;
  virtual size_t bytes() const = 0;  // what the batch holds, about
};

struct KeyRange {
  std::string begin;  // inclusive
  std::string end;    // exclusive
};

// What Engine::reclaim() has to tell.
struct Reclaimed {
  std::vector<uint64_t> gone;  // ids of which no key is left; no longer dead, but forgotten
  uint64_t left = 0;           // ids that are still dead
  bool again = false;          // there is more that is worth its work now
};

struct Capabilities {
  bool probe = false;       // Tier::kCacheOnly can answer
  bool checkpoint = false;  // checkpoint() works
  bool ring = false;        // reads of Tier::kCacheOnly heed NoWaitReads
};

// Figures for INFO and for the memory bound; counters since open.
struct EngineStats {
  uint64_t disk_bytes = 0;    // live files, WAL included
  uint64_t memory_bytes = 0;  // block cache, memtables, filters and readers that it holds
  uint64_t cache_bytes = 0;   // block cache in use, memtables charged to it included
  uint64_t cache_capacity = 0;
  uint64_t memtable_bytes = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t bytes_read = 0;     // from table files, by compactions too; LevelDB: not counted
  uint64_t bytes_written = 0;  // to log and table files; LevelDB: to the log
  uint64_t estimated_keys = 0;
  uint64_t pending_compaction_bytes = 0;
  uint64_t running_compactions = 0;
  uint64_t reclaim_rewritten = 0;  // bytes of files that reclaim() wrote again
  uint64_t reclaim_freed = 0;      // bytes that the disk got back by that
  // How long writes were held back: until logs are synced, and until memtables and level 0 are
  // written out (LevelDB does not tell of these).
  uint64_t stall_micros = 0;
  bool writes_stopped = false;  // the engine holds writes back right now
  // What has to be free on the disk for the engine to write out what it holds in memory and to
  // rewrite what it rewrites at a time: growth had better stop while there is so much, or what is
  // deleted then gives nothing back.
  uint64_t headroom_bytes = 0;
  uint64_t make_room_bytes = 0;  // what has to be free for make_room(), which takes some first
  bool makes_room = false;       // it has begun with what there is, and has not come to the end
  bool lacks_room = false;       // what would give space back finds too little to begin with
};

// One level of tables, of all spaces together.
struct EngineLevel {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct EngineOptions {
  std::string path;  // directory; created when absent. Ignored by the memory engine.
  // All memory of the engine together: block cache with memtables and filters charged to it.
  uint64_t cache_bytes = 256ull << 20;
  int bloom_bits = 12;              // per key; 0: no filters
  std::string compression = "lz4";  // none, snappy, lz4, zstd
  int compaction_threads = 0;       // 0: by core count
  uint64_t compaction_rate = 0;  // bytes a second that flush and compaction may write; 0: no limit
  bool direct_reads = false;     // bypass the page cache for reads
  // Tests only, and RocksDB only: path of a control file that makes the disk fail; see
  // rocksdb/fault_file_system.h.
  std::string fault_file;
  // Called on the thread that found out when health() turns worse, and must not call back into the
  // engine. May be empty.
  std::function<void(const Status&)> on_background_error;
  // For one line of engine news (compaction paused, recovery), on any thread. May be empty.
  std::function<void(const std::string&)> on_log;
};

class Engine {
 public:
  explicit Engine(std::function<void(const Status&)> on_background_error = {})
      : on_background_error_(std::move(on_background_error)) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Flushes nothing: what write() acknowledged is in the WAL. Closes files, releases the lock.
  virtual ~Engine() = default;

  virtual std::string_view name() const = 0;  // "rocksdb", "leveldb", "memory"
  virtual std::string version() const = 0;    // of the library
  virtual Capabilities capabilities() const = 0;

  // Point read. On kFound `*value` is replaced with the bytes; else it is unspecified. `snapshot`
  // may be null: the latest committed state. `error` may be null.
  virtual Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
                     std::string* value, Status* error) = 0;

  // What get() of the latest state answers for each of `keys`, Tier::kCacheOnly, in fewer steps.
  // kMiss also for what failed, and behind a megabyte of values. `values` and `found` are as long
  // as `keys`.
  virtual void get_many(Space space, std::span<const std::string_view> keys,
                        std::span<std::string> values, std::span<Lookup> found);

  virtual std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) = 0;
  virtual std::unique_ptr<Snapshot> new_snapshot() = 0;

  virtual std::unique_ptr<Batch> new_batch() = 0;
  // Commits the batch: all of it or, on failure, none of it that any reader sees. The only way into
  // the engine for whoever changes data. kNoSpace: there was no room for this batch; a smaller one
  // may find some. kUndecided refuses every batch. `batch` comes from this engine's new_batch() and
  // may be cleared and reused.
  Status write(const Batch& batch, Durability durability);

  // For those who write much in a row that nobody waits for, on a thread of their own, before each
  // batch: gives the engine time to write out what it holds in memory. If it had no more room
  // there, everybody's write() would have to wait for the disk. Blocks for a quarter of a second at
  // most.
  void give_way() const;

  // Makes every write() that has returned survive a power loss. Blocks for the disk.
  Status sync();

  // Moves what is in memory into table files. Blocks. For a clean shutdown and DEBUG RELOAD.
  virtual Status flush() = 0;

  // After kNoSpace: asks whether writing works again, which makes it kHealthy. May block for a
  // flush.
  Status try_resume();

  Health health() const { return health_.load(std::memory_order_acquire); }
  // What made it other than kHealthy; ok when nothing did.
  Status trouble() const;

  // Nobody reads what belongs to `ids` (ascending) any more, now or through any snapshot, and
  // nobody will write it again. The engine leaves it out of what it writes from now on. This is
  // kept in memory, within a bound: the answer is how many ids, from the front, there was room for.
  // The caller comes back with the others later, and with all of them after an open. Ids that are
  // dead already do no harm.
  virtual size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) = 0;

  // One bounded piece of work for the space of dead ids: of files of which much is dead. Blocks,
  // perhaps for many seconds: one background thread calls it.
  virtual Status reclaim(GarbageKind kind, Reclaimed* out) = 0;

  // One bounded piece of work for the space of keys that were removed one by one, which otherwise
  // comes back only when much else is written. For when space is short, but with make_room_bytes
  // free: it takes some first. To be called again and again while space is short. Blocks: the
  // thread of reclaim() calls it. LevelDB goes through all that it has, piece by piece, and
  // passes over pieces that it has no room for; RocksDB compacts tables that are mostly removals,
  // so a few among much that lives wait for the next compaction.
  virtual Status make_room() = 0;

  // To be called some times a second: an engine whose background work finds no space may ask less
  // of writes then. May block for a small write. One thread.
  virtual void look_at_space() {}

  // Before the destructor: background work that waits for space fails instead, and whoever waits
  // for it goes on; what is written out keeps to no rate any more. Any thread.
  virtual void interrupt() {}

  // Compacts a range fully (empty begin and end: the whole space). Blocks.
  virtual Status compact(Space space, const KeyRange& range) = 0;

  // The same with all there is, in pieces: ends soon after `stop` was set, and is kBusy then.
  virtual Status compact_all(std::atomic<bool>& stop);

  // A consistent copy in the new directory `path` (must not exist), by hard links where possible.
  virtual Status checkpoint(const std::string& path) = 0;

  virtual EngineStats stats() const = 0;      // cheap enough for once a second
  virtual uint64_t memory_bytes() const = 0;  // that of the stats; for ten times a second
  virtual std::vector<EngineLevel> levels() const {
    return {};
  }                                // level 0 first; looks at all files
  virtual void reset_stats() = 0;  // counters back to zero (CONFIG RESETSTAT)

  // Takes effect at once; the memory bound of the block cache.
  virtual void set_cache_bytes(uint64_t bytes) = 0;
  virtual void set_compaction_rate(uint64_t bytes_per_second) = 0;

 protected:
  // As their public names say; called only while health() allows it.
  virtual Status do_write(const Batch& batch, Durability durability) = 0;
  virtual Status do_sync() = 0;
  virtual Status do_try_resume() = 0;
  // There is memory in use that has to be written out before long; or logs have to be synced.
  virtual bool lags() const { return false; }

  // Takes a failure to write into account, a background thread's as well. Answers it, or what is
  // worse and known already.
  Status note(Status status);

 private:
  const std::function<void(const Status&)> on_background_error_;
  std::atomic<Health> health_{Health::kHealthy};  // changed under trouble_mutex_
  mutable std::mutex trouble_mutex_;
  Status trouble_;  // guarded by trouble_mutex_
  // How many were noted; changed under trouble_mutex_. One that comes while try_resume() looks is
  // not healed by that.
  std::atomic<uint64_t> failures_ = 0;
};

using OpenResult = std::pair<std::unique_ptr<Engine>, Status>;

// "rocksdb", "leveldb", or nothing: whose tables and logs stand in a directory, whatever is noted
// there.
std::string_view engine_by_files(const std::string& path);

// Creates the directory and notes in it, durably, which engine's data it holds; kInvalid when that
// is another's.
Status claim_directory(std::string_view engine, const std::string& path);

// Opens or creates. Status::kBusy when another process has the directory.
OpenResult open_rocksdb(const EngineOptions& options);
OpenResult open_leveldb(const EngineOptions& options);
OpenResult open_memory(const EngineOptions& options);
// By name; kInvalid for a name that is none of these, and for a directory that another engine
// wrote.
OpenResult open_engine(std::string_view name, const EngineOptions& options);

}  // namespace ingot::storage
