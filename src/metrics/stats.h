// Counters for INFO. Any thread; each is independent of the others.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "src/contract/row.h"
#include "src/metrics/latency_histogram.h"
#include "src/metrics/latency_monitor.h"
#include "src/metrics/sampler.h"
#include "src/metrics/slow_log.h"

namespace ingot::metrics {

using Counter = std::atomic<uint64_t>;

inline void add(Counter& counter, uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}
inline void raise_to(Counter& counter, uint64_t value) {
  uint64_t seen = counter.load(std::memory_order_relaxed);
  while (seen < value && !counter.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

struct CommandStats {
  Counter calls{0};
  Counter nanos{0};
  Counter rejected{0};  // before it ran: arity, permission, ...
  Counter failed{0};    // while it ran

  CommandStats() = default;
  ~CommandStats() { delete latencies_.load(); }
  CommandStats(const CommandStats&) = delete;
  CommandStats& operator=(const CommandStats&) = delete;
  // Made by the first command that is measured; null before.
  const LatencyHistogram* latencies() const { return latencies_.load(std::memory_order_acquire); }
  void measure(std::chrono::nanoseconds took);
  void reset();

 private:
  std::atomic<LatencyHistogram*> latencies_{nullptr};
};

class Stats {
 public:
  explicit Stats(int64_t now_ms) : start_ms(now_ms) {}

  const int64_t start_ms;  // Unix

  Counter commands{0};
  Counter connections_received{0};
  Counter connections_rejected{0};
  Counter evicted_clients{0};
  Counter keyspace_hits{0};
  Counter keyspace_misses{0};
  Counter expired_keys{0};
  Counter error_replies{0};  // count_error()'s
  Counter full_syncs{0};     // of replicas
  Counter partial_syncs{0};
  Counter refused_partial_syncs{0};
  Counter changes_since_save{0};
  Counter saves{0};  // checkpoints that succeeded
  Counter memory_peak{0};
  Counter kept_items_bytes{0};  // sorted items that replies still hold (types/spill_sort.h)
  // # Threads
  Counter probes{0};       // reads tried in memory on an I/O thread
  Counter probe_hits{0};   // ... and answered there
  Counter groups{0};       // commits
  Counter group_units{0};  // units in them
  Counter group_units_max{0};
  Counter rollbacks{0};          // units that needed the disk and were run again
  Counter writer_disk_reads{0};  // units for which the writer itself went to the disk
  Counter pool_built_units{0};   // units that asked the pool for something too large for the writer
  Counter writer_busy_micros{0};
  Counter writer_commit_micros{0};
  Counter unread_overwrites{0};  // keys that were overwritten without a look at their record
  Counter sync_waits{0};         // groups held back because an fsync was late

  Counter expire_micros{0};        // that the writer spent on what was due
  Counter expire_batches_full{0};  // ... and how often that was more than it takes at a time

  // What others had counted when the statistics were reset; INFO shows what came since.
  Counter bytes_in_before{0};
  Counter bytes_out_before{0};
  Counter reads_before{0};
  Counter writes_before{0};
  Counter reclaimed_before{0};

  Sampler sampler;
  SlowLog slow_log;
  LatencyMonitor latency;
  std::atomic<bool> measures_latencies{true};  // of each command

  // The row's counters; rows are never removed. No lock: every command comes here.
  CommandStats& of(const contract::CommandRow& row);
  // The same for INFO: null while the row was not counted.
  const CommandStats* find(const contract::CommandRow& row) const;

  // Counts an error reply ("ERR no such key") in all, and by its first word.
  void count_error(std::string_view reply);
  std::map<std::string, uint64_t> errors() const;

  // CONFIG RESETSTAT; what others have counted by now.
  struct Totals {
    uint64_t bytes_in = 0;  // of the network
    uint64_t bytes_out = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t reclaimed = 0;  // collections
  };
  void reset(const Totals& totals);

 private:
  // Open addressing by the row's address; far more slots than there are commands.
  static constexpr int kSlotBits = 11;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  struct Slot {
    std::atomic<const contract::CommandRow*> row{nullptr};
    CommandStats stats;
  };
  static size_t slot_of(const contract::CommandRow& row);

  std::array<Slot, kSlots> slots_;
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> errors_;  // by mutex_
};

}  // namespace ingot::metrics
