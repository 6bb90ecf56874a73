// The RocksDB engine: compaction, checkpoints, figures and live settings.
#include <fmt/format.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

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

Status RocksdbEngine::compact(Space space, const KeyRange& range) {
  const rocksdb::Slice begin(range.begin);
  const rocksdb::Slice end(range.end);
  if (stopped_) return stopped();
  Status status = to_status(db_->CompactRange(compact_options(), handle(space),
                                              range.begin.empty() ? nullptr : &begin,
                                              range.end.empty() ? nullptr : &end));
  return !status.ok() && stopped_ ? stopped() : status;
}

Status RocksdbEngine::compact_all(std::atomic<bool>& stop) {
  rocksdb::CompactRangeOptions options = compact_options();
  options.canceled = &stop;
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    if (stopped_) return stopped();
    const rocksdb::Status status = db_->CompactRange(options, space, nullptr, nullptr);
    if (stop) return {Status::Code::kBusy, "the server stops"};
    if (!status.ok()) return stopped_ ? stopped() : to_status(status);
  }
  return {};
}

Status RocksdbEngine::checkpoint(const std::string& path) {
  if (stopped_) return stopped();
  rocksdb::Checkpoint* raw = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &raw);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  return to_status(status);
}

// Memtables, table readers and filters under construction are all charged to the cache.
uint64_t RocksdbEngine::memory_bytes() const {
  return shared_.cache->GetUsage();
}

EngineStats RocksdbEngine::stats() const {
  using Property = rocksdb::DB::Properties;
  const rocksdb::Statistics& tickers = *shared_.statistics;
  EngineStats stats;
  stats.disk_bytes = property_of_all_spaces(Property::kLiveSstFilesSize) + ledger_.bytes();
  stats.cache_bytes = memory_bytes();
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
  stats.reclaim_rewritten = reclaim_rewritten_;
  stats.reclaim_freed = reclaim_freed_;
  stats.stall_micros = tickers.getTickerCount(rocksdb::STALL_MICROS) + ledger_.waited_micros();
  stats.writes_stopped = property(Property::kIsWriteStopped) != 0;
  stats.headroom_bytes = stats.memtable_bytes + kReserveBytes + largest_compaction();
  constexpr uint64_t kTableBytes = 4 << 20;  // what tables take beside what is in memory
  stats.make_room_bytes = stats.memtable_bytes + kTableBytes;
  stats.lacks_room = lack_room_;
  return stats;
}

// What the largest compaction that may come next writes before it gives anything back.
uint64_t RocksdbEngine::largest_compaction() const {
  constexpr uint64_t kLeast = 8 << 20;  // enough for what deletes leave behind
  const MemoryPlan memory = plan_memory(shared_.cache->GetCapacity(), shared_.disk_bytes);
  const TablePlan tables = plan_tables(memory, shared_.disk_bytes);
  uint64_t bytes = tables.compaction + 4 * tables.table;
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    uint64_t level0_files = 0;
    std::string text;
    if (db_->GetProperty(space, rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0", &text)) {
      level0_files = std::strtoull(text.c_str(), nullptr, 10);
    }
    bytes = std::max(bytes, tables.level_base + level0_files * memory.memtable);
  }
  const uint64_t live = property_of_all_spaces(rocksdb::DB::Properties::kLiveSstFilesSize);
  return std::max(kLeast, std::min(bytes, live));
}

std::vector<EngineLevel> RocksdbEngine::levels() const {
  std::vector<EngineLevel> levels;
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(space, &metadata);
    levels.resize(std::max(levels.size(), metadata.levels.size()));
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      EngineLevel& sum = levels[static_cast<size_t>(level.level)];
      sum.files += level.files.size();
      sum.bytes += level.size;
    }
  }
  return levels;
}

void RocksdbEngine::reset_stats() {
  log_failure("RocksDB kept its counters", shared_.statistics->Reset());
  reclaim_rewritten_ = 0;
  reclaim_freed_ = 0;
}

std::unordered_map<std::string, std::string> RocksdbEngine::level0_triggers() const {
  constexpr int kNone = std::numeric_limits<int>::max();
  const MemoryPlan plan = plan_memory(shared_.cache->GetCapacity(), shared_.disk_bytes);
  const int slowdown = lack_room_ ? kNone : plan.level0_slowdown;
  const int stop = lack_room_ || never_stops_writes_ ? kNone : plan.level0_stop;
  return {{"level0_slowdown_writes_trigger", std::to_string(slowdown)},
          {"level0_stop_writes_trigger", std::to_string(stop)}};
}

void RocksdbEngine::set_level0_triggers() {
  set_options(level0_triggers());
}

void RocksdbEngine::set_options(const std::unordered_map<std::string, std::string>& options) {
  const std::lock_guard lock(files_mutex_);
  rocksdb::Status status = keep_files();
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    if (status.ok()) status = db_->SetOptions(space, options);
  }
  log_failure("RocksDB kept its options", status);
  let_files_go(status);
  for (; status.ok() && keeps_files_ > 0; --keeps_files_) let_files_go(status);
  options_tried_at_ = std::chrono::steady_clock::now();
}

// Of a space whose last compaction found no room: whether it is still to be made.
bool RocksdbEngine::lacks_room(Space space) const {
  constexpr std::chrono::seconds kRemembered{30};  // RocksDB tries again each second, or each few
  using Property = rocksdb::DB::Properties;
  const auto at = found_no_room_at_[static_cast<size_t>(space)].load();
  if (std::chrono::steady_clock::now() - at > kRemembered) return false;
  uint64_t pending = 0;
  return !db_->GetIntProperty(handle(space), Property::kCompactionPending, &pending) ||
         pending > 0 || property(Property::kNumRunningCompactions) > 0;
}

// Slow writes give compactions no room: only who deletes does.
void RocksdbEngine::look_at_space() {
  if (stopped_) return;
  bool lack_room = false;
  for (const Space space : kAllSpaces) {
    if (lacks_room(space)) {
      lack_room = true;
    } else {
      found_no_room_at_[static_cast<size_t>(space)] = std::chrono::steady_clock::time_point();
    }
  }
  constexpr std::chrono::seconds kRetry{5};
  const bool retries =
      keeps_files_ > 0 && std::chrono::steady_clock::now() - options_tried_at_.load() > kRetry;
  if (lack_room_.exchange(lack_room) != lack_room || retries) set_level0_triggers();
}

void RocksdbEngine::set_cache_bytes(uint64_t bytes) {
  const MemoryPlan plan = plan_memory(bytes, shared_.disk_bytes);
  shared_.memtables->SetBufferSize(plan.memtables);
  shared_.cache->SetCapacity(bytes);
  log_failure("RocksDB kept the size of its log",
              db_->SetDBOptions({{"max_total_wal_size", fmt::format("{}", plan.wal_max)}}));
  std::unordered_map<std::string, std::string> sizes = level0_triggers();
  sizes["write_buffer_size"] = std::to_string(plan.memtable);
  const TablePlan tables = plan_tables(plan, shared_.disk_bytes);
  sizes["max_bytes_for_level_base"] = std::to_string(tables.level_base);
  sizes["level0_file_num_compaction_trigger"] = std::to_string(tables.level0_tables);
  set_options(sizes);
}

void RocksdbEngine::set_compaction_rate(uint64_t bytes_per_second) {
  shared_.rate_limiter->SetBytesPerSecond(limiter_rate(bytes_per_second));
}

// What has begun to be written out is written to the end, however slow.
void RocksdbEngine::interrupt() {
  interrupted_ = true;
  set_compaction_rate(0);
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
