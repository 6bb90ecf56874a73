// The RocksDB engine: reclaiming, compaction, checkpoints, figures and live settings.
#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>

#include "storage/log_files.h"
#include "storage/rocksdb/rocksdb_engine.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace ingot::storage {
namespace {

rocksdb::CompactRangeOptions compact_options() {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;  // automatic compactions go on beside it
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  return options;
}

}  // namespace

Status RocksdbEngine::reclaim(Space space, std::span<const KeyRange> ranges) {
  if (ranges.empty()) return {};
  std::lock_guard one_at_a_time(reclaim_mutex_);
  DeadRanges& dead = dead_ranges_[static_cast<size_t>(space)];
  dead.set(ranges);
  Status status = delete_whole_files(space, ranges);
  if (status.ok()) {
    // A compaction that began before set() does not skip the ranges, but those below wait for it
    // where they meet its files, and pass over what it wrote.
    for (const KeyRange& run : merge_into_runs(ranges, deepest_files(space))) {
      const rocksdb::Slice begin(run.begin);
      const rocksdb::Slice end(run.end);
      status = to_status(db_->CompactRange(compact_options(), handle(space), &begin, &end));
      if (!status.ok()) break;
    }
  }
  dead.clear();
  if (status.ok()) status = release_logs();
  return status;
}

// A log stays for as long as one space has a change in it that is not in a table yet: a quiet
// space would keep what was reclaimed from the others.
Status RocksdbEngine::release_logs() {
  constexpr uint64_t kKeptBytes = 16 << 20;
  const uint64_t log_bytes = log_file_bytes(path_);
  if (log_bytes < kKeptBytes || log_bytes < 2 * shared_.memtables->memory_usage()) return {};
  return flush();
}

// What no compaction need read again.
Status RocksdbEngine::delete_whole_files(Space space, std::span<const KeyRange> ranges) {
  constexpr size_t kRangesMax = 1000;  // RocksDB holds its mutex while it looks for their files
  for (size_t begin = 0; begin < ranges.size(); begin += kRangesMax) {
    const auto part = ranges.subspan(begin, std::min(kRangesMax, ranges.size() - begin));
    std::vector<rocksdb::Slice> bounds;
    bounds.reserve(2 * part.size());
    std::vector<rocksdb::RangePtr> pointers;
    for (const KeyRange& range : part) {
      bounds.emplace_back(range.begin);
      bounds.emplace_back(range.end);
      pointers.emplace_back(&bounds[bounds.size() - 2], &bounds.back());
    }
    const rocksdb::Status status = rocksdb::DeleteFilesInRanges(
        db_.get(), handle(space), pointers.data(), pointers.size(), /*include_end=*/false);
    if (!status.ok()) return to_status(status);
  }
  return {};
}

std::vector<FileSpan> RocksdbEngine::deepest_files(Space space) const {
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(handle(space), &metadata);
  std::vector<FileSpan> spans;
  // Files of level 0 overlap each other and say nothing about where keys lie.
  for (size_t level = metadata.levels.size(); level-- > 1 && spans.empty();) {
    for (const rocksdb::SstFileMetaData& file : metadata.levels[level].files) {
      spans.emplace_back(file.smallestkey, file.largestkey);
    }
  }
  return spans;
}

Status RocksdbEngine::compact(Space space, const KeyRange& range) {
  const rocksdb::Slice begin(range.begin);
  const rocksdb::Slice end(range.end);
  return to_status(db_->CompactRange(compact_options(), handle(space),
                                     range.begin.empty() ? nullptr : &begin,
                                     range.end.empty() ? nullptr : &end));
}

Status RocksdbEngine::checkpoint(const std::string& path) {
  rocksdb::Checkpoint* raw = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &raw);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  return to_status(status);
}

EngineStats RocksdbEngine::stats() const {
  using Property = rocksdb::DB::Properties;
  const rocksdb::Statistics& tickers = *shared_.statistics;
  EngineStats stats;
  stats.disk_bytes = property_of_all_spaces(Property::kLiveSstFilesSize) + log_file_bytes(path_);
  // Memtables, table readers and filters under construction are all charged to the cache.
  stats.cache_bytes = shared_.cache->GetUsage();
  stats.memory_bytes = stats.cache_bytes;
  stats.cache_capacity = shared_.cache->GetCapacity();
  stats.memtable_bytes = shared_.memtables->memory_usage();
  stats.cache_hits = tickers.getTickerCount(rocksdb::BLOCK_CACHE_HIT);
  stats.cache_misses = tickers.getTickerCount(rocksdb::BLOCK_CACHE_MISS);
  stats.bytes_read = tickers.getTickerCount(rocksdb::LAST_LEVEL_READ_BYTES) +
                     tickers.getTickerCount(rocksdb::NON_LAST_LEVEL_READ_BYTES);
  stats.bytes_written = tickers.getTickerCount(rocksdb::WAL_FILE_BYTES) +
                        tickers.getTickerCount(rocksdb::FLUSH_WRITE_BYTES) +
                        tickers.getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  stats.estimated_keys = property_of_all_spaces(Property::kEstimateNumKeys);
  stats.pending_compaction_bytes =
      property_of_all_spaces(Property::kEstimatePendingCompactionBytes);
  stats.running_compactions = property(Property::kNumRunningCompactions);
  stats.stall_micros = tickers.getTickerCount(rocksdb::STALL_MICROS);
  stats.writes_stopped = property(Property::kIsWriteStopped) != 0;
  constexpr uint64_t kCompactionBytes = 16 << 20;  // enough for what deletes leave behind
  stats.headroom_bytes = stats.memtable_bytes + kCompactionBytes;
  return stats;
}

void RocksdbEngine::reset_stats() {
  log_failure("RocksDB kept its counters", shared_.statistics->Reset());
}

void RocksdbEngine::set_cache_bytes(uint64_t bytes) {
  const MemoryPlan plan = plan_memory(bytes);
  shared_.memtables->SetBufferSize(plan.memtables);
  shared_.cache->SetCapacity(bytes);
  log_failure("RocksDB kept the size of its log",
              db_->SetDBOptions({{"max_total_wal_size", fmt::format("{}", plan.wal_max)}}));
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    log_failure(
        "RocksDB kept the size of its memtables",
        db_->SetOptions(space, {{"write_buffer_size", fmt::format("{}", plan.memtable)},
                                {"max_bytes_for_level_base", fmt::format("{}", plan.level_base)}}));
  }
}

void RocksdbEngine::set_compaction_rate(uint64_t bytes_per_second) {
  shared_.rate_limiter->SetBytesPerSecond(limiter_rate(bytes_per_second));
}

uint64_t RocksdbEngine::property(const std::string& name) const {
  uint64_t value = 0;
  return db_->GetIntProperty(name, &value) ? value : 0;
}

uint64_t RocksdbEngine::property_of_all_spaces(const std::string& name) const {
  uint64_t value = 0;
  return db_->GetAggregatedIntProperty(name, &value) ? value : 0;
}

}  // namespace ingot::storage
