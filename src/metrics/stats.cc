// Counters by command and by error.
#include "src/metrics/stats.h"

#include <memory>

namespace ingot::metrics {

void CommandStats::measure(std::chrono::nanoseconds took) {
  LatencyHistogram* histogram = latencies_.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    auto made = std::make_unique<LatencyHistogram>();
    if (latencies_.compare_exchange_strong(histogram, made.get())) histogram = made.release();
  }
  histogram->record(static_cast<uint64_t>(took.count()));
}

void CommandStats::reset() {
  for (Counter* counter : {&calls, &nanos, &rejected, &failed}) {
    counter->store(0, std::memory_order_relaxed);
  }
  if (LatencyHistogram* histogram = latencies_.load()) histogram->reset();
}

size_t Stats::slot_of(const contract::CommandRow& row) {
  return reinterpret_cast<uintptr_t>(&row) * uint64_t{0x9e3779b97f4a7c15} >> (64 - kSlotBits);
}

CommandStats& Stats::of(const contract::CommandRow& row) {
  for (size_t i = slot_of(row);; i = (i + 1) % kSlots) {
    Slot& slot = slots_[i];
    const contract::CommandRow* found = slot.row.load(std::memory_order_relaxed);
    if (found == nullptr && slot.row.compare_exchange_strong(found, &row)) return slot.stats;
    if (found == &row) return slot.stats;
  }
}

const CommandStats* Stats::find(const contract::CommandRow& row) const {
  for (size_t i = slot_of(row);; i = (i + 1) % kSlots) {
    const contract::CommandRow* found = slots_[i].row.load(std::memory_order_relaxed);
    if (found == nullptr) return nullptr;
    if (found == &row) return &slots_[i].stats;
  }
}

void Stats::count_error(std::string_view reply) {
  add(error_replies);
  std::string code(reply.substr(0, reply.find(' ')));
  std::lock_guard lock(mutex_);
  // Scripts make codes of their own.
  constexpr size_t kCodesMax = 128;
  if (errors_.size() < kCodesMax || errors_.contains(code)) ++errors_[std::move(code)];
}

std::map<std::string, uint64_t> Stats::errors() const {
  std::lock_guard lock(mutex_);
  return errors_;
}

void Stats::reset(const Totals& totals) {
  for (Counter* counter : {&commands,
                           &connections_received,
                           &connections_rejected,
                           &evicted_clients,
                           &keyspace_hits,
                           &keyspace_misses,
                           &expired_keys,
                           &full_syncs,
                           &partial_syncs,
                           &refused_partial_syncs,
                           &error_replies,
                           &probes,
                           &probe_hits,
                           &groups,
                           &group_units,
                           &group_units_max,
                           &rollbacks,
                           &writer_disk_reads,
                           &pool_built_units,
                           &writer_busy_micros,
                           &writer_commit_micros,
                           &sync_waits,
                           &unread_overwrites,
                           &expire_micros,
                           &expire_batches_full}) {
    counter->store(0, std::memory_order_relaxed);
  }
  bytes_in_before = totals.bytes_in;
  bytes_out_before = totals.bytes_out;
  reads_before = totals.reads;
  writes_before = totals.writes;
  reclaimed_before = totals.reclaimed;
  for (Slot& slot : slots_) slot.stats.reset();
  std::lock_guard lock(mutex_);
  errors_.clear();
}

}  // namespace ingot::metrics
