// Counting values into buckets, and percentiles and sums over them.
#include "src/metrics/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace ingot::metrics {

void LatencyHistogram::record(uint64_t nanos) {
  counts_[bucket_of(std::min(nanos, kNanosMax))].fetch_add(1, std::memory_order_relaxed);
}

uint64_t LatencyHistogram::count() const {
  return count_up_to(kNanosMax);
}

uint64_t LatencyHistogram::percentile(double percent) const {
  const double all = static_cast<double>(count());
  const auto wanted =
      static_cast<uint64_t>(std::max(1.0, std::ceil(std::min(percent, 100.0) / 100 * all)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket].load(std::memory_order_relaxed);
    if (seen >= wanted) return highest_in(bucket);
  }
  return 0;
}

uint64_t LatencyHistogram::count_up_to(uint64_t nanos) const {
  uint64_t seen = 0;
  const size_t last = bucket_of(std::min(nanos, kNanosMax));
  for (size_t bucket = 0; bucket <= last; ++bucket) {
    seen += counts_[bucket].load(std::memory_order_relaxed);
  }
  return seen;
}

void LatencyHistogram::reset() {
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
}

}  // namespace ingot::metrics
