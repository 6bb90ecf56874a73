// Every setting that Ingot gives to RocksDB, with its reason.
#include "storage/rocksdb/rocksdb_options.h"

#include <fmt/format.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <thread>

#include "storage/rocksdb/long_keys.h"
#include "storage/rocksdb/young_tables.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

std::optional<rocksdb::CompressionType> parse_compression(std::string_view name) {
  if (name == "none") return rocksdb::kNoCompression;
  if (name == "snappy") return rocksdb::kSnappyCompression;
  if (name == "lz4") return rocksdb::kLZ4Compression;
  if (name == "zstd") return rocksdb::kZSTD;
  return std::nullopt;
}

// Few shards in a small cache: an entry must be small against its shard, and memtables are
// charged in entries of 256 KB.
int shard_bits(uint64_t cache_bytes) {
  constexpr uint64_t kShardBytesMin = 2 * kMiB;
  constexpr int kShardBitsMax = 6;
  const uint64_t shards = std::max<uint64_t>(1, cache_bytes / kShardBytesMin);
  return std::min(kShardBitsMax, static_cast<int>(std::bit_width(shards)) - 1);
}

// Half of the cores leave the other half to commands; one alone lets level 0 grow while it is
// busy with a deep level.
int default_compaction_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 2, 8);
}

// Of a table whose filter the cache keeps as one block: a shard has room for some beside all else.
uint64_t whole_filter_keys(const EngineOptions& options) {
  constexpr uint64_t kOfShard = 4;
  const uint64_t shard_bytes = options.cache_bytes >> shard_bits(options.cache_bytes);
  return shard_bytes / kOfShard * 8 / static_cast<uint64_t>(std::max(1, options.bloom_bits));
}

rocksdb::BlockBasedTableOptions make_table_options(Space space, const EngineOptions& options,
                                                   const SharedParts& shared) {
  using Table = rocksdb::BlockBasedTableOptions;
  Table table;
  table.block_cache = shared.cache;
  table.format_version = 5;
  // With its filter and index in memory, a cold read is one disk access of one block.
  table.block_size = 4 * kKiB;
  table.block_restart_interval =
      8;  // a look-up steps through one interval: fewer steps for 1 % of size
  table.index_type = Table::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.cache_index_and_filter_blocks = true;
  table.metadata_cache_options.top_level_index_pinning = rocksdb::PinningTier::kAll;
  // Level 0 is looked through on every read and small.
  table.metadata_cache_options.partition_pinning = rocksdb::PinningTier::kFlushedAndSimilar;
  table.metadata_cache_options.unpartitioned_pinning = rocksdb::PinningTier::kFlushedAndSimilar;
  // The memory bound covers what tables cost beside their blocks.
  for (auto role : {rocksdb::CacheEntryRole::kBlockBasedTableReader,
                    rocksdb::CacheEntryRole::kFilterConstruction}) {
    table.cache_usage_options.options_overrides[role].charged =
        rocksdb::CacheEntryRoleOptions::Decision::kEnabled;
  }
  // What was just written is what is read next; with direct reads it would come from the disk.
  table.prepopulate_block_cache = Table::PrepopulateBlockCache::kFlushOnly;
  // The time index and the garbage list are only walked in order, never looked up by key.
  const bool looked_up = space != Space::kExpiry && space != Space::kGarbage;
  if (options.bloom_bits > 0 && looked_up) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(options.bloom_bits));
  }
  if (space == Space::kMeta) table.data_block_index_type = Table::kDataBlockBinaryAndHash;
  return table;
}

// Not much larger than the level 0 that is merged into it, so that each byte is rewritten few times
// there, and large enough that often there is a level less below it.
uint64_t level_base(const MemoryPlan& plan) {
  return std::max<uint64_t>(64 * kMiB, 2 * plan.memtables);
}

}  // namespace

MemoryPlan plan_memory(uint64_t cache_bytes, uint64_t disk_bytes) {
  MemoryPlan plan;
  // Bounded for what a start after a crash has to read again: some ten milliseconds for a megabyte.
  plan.memtables =
      std::clamp<uint64_t>(std::min(cache_bytes / 4, disk_bytes / 16), 4 * kMiB, 256 * kMiB);
  // The larger a table of level 0, the fewer times the level below is rewritten for the same bytes.
  // In a small cache they are half as large, as all that a space may have wait for a slow disk at
  // times, and on a small disk, as a merge takes room.
  constexpr uint64_t kRoomyCache = 64 * kMiB;
  const bool is_roomy = cache_bytes >= kRoomyCache && plan.memtables <= disk_bytes / 64;
  plan.memtable = plan.memtables / (is_roomy ? 2 : kMemtablesPerSpace);
  // RocksDB slows writes down further with each table that comes meanwhile, to next to nothing.
  // Small tables may wait in greater number for a merge that takes as long as ever; but what is
  // pinned of each must leave room in the cache.
  constexpr uint64_t kCacheOfTable = 768 * kKiB;
  plan.level0_slowdown = static_cast<int>(std::clamp<uint64_t>(
      std::min(level_base(plan) / plan.memtable, cache_bytes / kCacheOfTable), 20, 48));
  plan.level0_stop = plan.level0_slowdown + 16;
  plan.wal_max = std::max<uint64_t>(64 * kMiB, plan.memtables);
  // A dozen files at once: 2 MB for each doubled what a server of 32 MB took in all.
  plan.readahead = std::clamp<uint64_t>(cache_bytes / 256, 256 * kKiB, 2 * kMiB);
  return plan;
}

TablePlan plan_tables(const MemoryPlan& memory, uint64_t disk_bytes) {
  // RocksDB's own ratio. Files grow with depth: few open files at a terabyte, small steps where
  // compaction is busy.
  constexpr uint64_t kTablesOfCompaction = 25;
  TablePlan plan;
  plan.compaction = std::clamp<uint64_t>(disk_bytes / 20, 16 * kMiB, 800 * kMiB);
  plan.table = std::max<uint64_t>(2 * kMiB, plan.compaction / kTablesOfCompaction);
  plan.level_base = std::min(level_base(memory), std::max(memory.memtables, disk_bytes / 16));
  // More would make walks slower, which seek in each of them. Level 0 is no larger than the level
  // that it goes into.
  plan.level0_tables =
      static_cast<int>(std::clamp<uint64_t>(plan.level_base / memory.memtable, 4, 6));
  return plan;
}

// Filters and index stay longer than data, which needs some room beside memtables nevertheless:
// blocks that are fetched for a write must be there when it runs again.
double share_of_filters(uint64_t cache_bytes, uint64_t disk_bytes) {
  constexpr uint64_t kForData = 4 * kMiB;
  const uint64_t others = plan_memory(cache_bytes, disk_bytes).memtables + kForData;
  const uint64_t rest = cache_bytes - std::min(cache_bytes, others);
  return std::max(0.5, static_cast<double>(rest) / static_cast<double>(cache_bytes));
}

SharedParts make_shared_parts(const EngineOptions& options) {
  SharedParts parts;
  std::error_code unknown;
  const uint64_t disk_bytes = std::filesystem::space(options.path, unknown).capacity;
  parts.disk_bytes = unknown ? UINT64_MAX : disk_bytes;
  rocksdb::LRUCacheOptions cache;
  cache.capacity = options.cache_bytes;
  cache.num_shard_bits = shard_bits(options.cache_bytes);
  // Never strict: a read must not fail because the cache is full of pinned blocks.
  cache.strict_capacity_limit = false;
  cache.high_pri_pool_ratio = share_of_filters(options.cache_bytes, parts.disk_bytes);
  parts.cache = rocksdb::NewLRUCache(cache);
  // No stall: a memtable that an open cursor pins would hold writes for as long as the cursor
  // lives, and the writer's own cursor would hold them for ever.
  parts.memtables = std::make_shared<rocksdb::WriteBufferManager>(
      plan_memory(options.cache_bytes, parts.disk_bytes).memtables, parts.cache,
      /*allow_stall=*/false);
  constexpr int64_t kPeriodMicros = 10'000;  // see limiter_rate()
  parts.rate_limiter.reset(rocksdb::NewGenericRateLimiter(limiter_rate(0), kPeriodMicros));
  parts.statistics = rocksdb::CreateDBStatistics();
  parts.statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  return parts;
}

// What the limiter has left of one period it keeps when the rate is lowered: no more than 86 MB.
int64_t limiter_rate(uint64_t bytes_per_second) {
  constexpr uint64_t kUnlimited = 1ull << 33;
  return static_cast<int64_t>(bytes_per_second == 0 ? kUnlimited
                                                    : std::min(bytes_per_second, kUnlimited));
}

Status check_options(const EngineOptions& options) {
  if (parse_compression(options.compression)) return {};
  return {Status::Code::kInvalid,
          fmt::format("unknown compression '{}'; it is one of none, snappy, lz4, zstd",
                      options.compression)};
}

rocksdb::DBOptions make_db_options(const EngineOptions& options, const SharedParts& shared) {
  const int compactions =
      options.compaction_threads > 0 ? options.compaction_threads : default_compaction_threads();
  const MemoryPlan plan = plan_memory(options.cache_bytes, shared.disk_bytes);
  rocksdb::DBOptions db;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  // A limit makes a cache-only read answer "found, empty" for a file that is not open.
  db.max_open_files = -1;
  db.write_buffer_manager = shared.memtables;
  db.allow_concurrent_memtable_write = false;  // our memtables have one writer
  db.rate_limiter = shared.rate_limiter;
  db.statistics = shared.statistics;
  // RocksDB gives a quarter of its jobs to flushes, at least one.
  db.max_background_jobs = compactions + std::max(1, compactions / 3);
  db.max_subcompactions = static_cast<uint32_t>(std::max(1, compactions / 2));
  // Without it the limiter's rate is taken, which may mean "none".
  db.delayed_write_rate = 32 * kMiB;
  db.use_direct_reads = options.direct_reads;
  db.use_direct_io_for_flush_and_compaction = options.direct_reads;
  db.compaction_readahead_size = plan.readahead;
  db.bytes_per_sync = kMiB;
  db.wal_bytes_per_sync = 512 * kKiB;
  // A record cut off by a crash ends a log; anything else that is wrong refuses to open rather
  // than dropping acknowledged writes. (Recycled logs cannot tell the two apart: not used.)
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.max_total_wal_size = plan.wal_max;
  // A stop is quick; the log has everything.
  db.avoid_flush_during_shutdown = true;
  // Files are deleted by a background thread, not by the read that held them last.
  db.avoid_unnecessary_blocking_io = true;
  db.skip_stats_update_on_db_open = true;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

rocksdb::ColumnFamilyOptions make_space_options(Space space, const EngineOptions& options,
                                                const SharedParts& shared) {
  const MemoryPlan plan = plan_memory(options.cache_bytes, shared.disk_bytes);
  const TablePlan tables = plan_tables(plan, shared.disk_bytes);
  const auto compression = parse_compression(options.compression).value_or(rocksdb::kNoCompression);
  rocksdb::ColumnFamilyOptions cf;
  rocksdb::BlockBasedTableOptions table = make_table_options(space, options, shared);
  const std::shared_ptr<rocksdb::TableFactory> deep(NewBlockBasedTableFactory(table));
  table.partition_filters = false;
  const std::shared_ptr<rocksdb::TableFactory> young(NewBlockBasedTableFactory(table));
  cf.target_file_size_base = tables.table;
  cf.target_file_size_multiplier = 2;
  cf.max_compaction_bytes = tables.compaction;
  divide_tables(&cf, {.young = young, .others = deep, .keys_max = whole_filter_keys(options)});
  adapt_to_long_keys(&cf, {young, deep});
  cf.write_buffer_size = plan.memtable;
  cf.max_write_buffer_number = kMemtablesPerSpace;
  // Reads of absent keys skip the memtable, too.
  cf.memtable_whole_key_filtering = true;
  cf.memtable_prefix_bloom_size_ratio = 0.02;
  // A table that holds mostly removals goes down at once: they take no space, but hold some. The
  // other spaces are small, and written in turn with removals.
  if (space == Space::kMeta || space == Space::kData || space == Space::kOrder) {
    cf.table_properties_collector_factories.push_back(
        rocksdb::NewCompactOnDeletionCollectorFactory(0, 0, 0.5));
  }
  cf.level_compaction_dynamic_level_bytes = true;
  cf.max_bytes_for_level_base = tables.level_base;
  cf.level0_file_num_compaction_trigger = tables.level0_tables;
  cf.level0_slowdown_writes_trigger = plan.level0_slowdown;
  cf.level0_stop_writes_trigger = plan.level0_stop;
  cf.optimize_filters_for_hits = false;  // absent keys are common: filters in every level
  // The two youngest levels are rewritten soon: compressing them costs more than it saves.
  cf.compression_per_level = {rocksdb::kNoCompression, rocksdb::kNoCompression, compression};
  cf.bottommost_compression = compression;
  return cf;
}

}  // namespace ingot::storage
