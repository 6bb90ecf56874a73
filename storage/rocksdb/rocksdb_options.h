// Every setting that Ingot gives to RocksDB, with its reason beside it in the .cc.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/options.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/statistics.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdint>
#include <memory>

#include "storage/engine.h"
#include "storage/spaces.h"
#include "storage/status.h"

namespace ingot::storage {

// How many memtables a space may have, the one that is written to among them.
inline constexpr int kMemtablesPerSpace = 4;

// How the memory number is divided, all in bytes. Memtables are charged to the cache, so the
// cache is the whole of it and they are a share of the cache.
struct MemoryPlan {
  uint64_t memtables = 0;   // of all spaces together
  uint64_t memtable = 0;    // one memtable of one space
  int level0_slowdown = 0;  // tables in level 0 from which on writes are slowed down
  int level0_stop = 0;      // and from which on they wait
  uint64_t wal_max = 0;     // a log that outgrows it makes the oldest memtables flush
  uint64_t readahead = 0;   // of a compaction, for each of its files; beside the cache
};
// `disk_bytes`: what is in memory is written out at once, so it is a small part of the disk.
MemoryPlan plan_memory(uint64_t cache_bytes, uint64_t disk_bytes);

// How much compactions rewrite at a time, in bytes. Each takes as much of the disk before it gives
// anything back, so it is a small part of the disk.
struct TablePlan {
  uint64_t level_base = 0;  // size of the first level below level 0, which is rewritten as a whole
  int level0_tables = 0;    // in level 0, from which on they are merged into it
  uint64_t table = 0;       // one table of that level; twice as much with each level below
  uint64_t compaction = 0;  // what a table of a deeper level is merged with
};
TablePlan plan_tables(const MemoryPlan& memory, uint64_t disk_bytes);

// How much of the cache filters and indexes keep before data is evicted for them.
double share_of_filters(uint64_t cache_bytes, uint64_t disk_bytes);

// What all spaces share and what can be changed while the engine runs. Thread safe.
struct SharedParts {
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::WriteBufferManager> memtables;
  std::shared_ptr<rocksdb::RateLimiter> rate_limiter;
  std::shared_ptr<rocksdb::Statistics> statistics;
  uint64_t disk_bytes = 0;  // the size of the file system
};
SharedParts make_shared_parts(const EngineOptions& options);

// In RocksDB's terms: a limiter has no "off", so 0 becomes a rate that no disk reaches.
int64_t limiter_rate(uint64_t bytes_per_second);

// kInvalid for a compression that is none of the known ones.
Status check_options(const EngineOptions& options);

rocksdb::DBOptions make_db_options(const EngineOptions& options, const SharedParts& shared);

rocksdb::ColumnFamilyOptions make_space_options(Space space, const EngineOptions& options,
                                                const SharedParts& shared);

}  // namespace ingot::storage
