// How long something took, as counts in buckets: sixteen for each power of two of nanoseconds, so a
// value is known to a sixteenth.
//
// Any thread; what is read while others record is of about now.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ingot::metrics {

class LatencyHistogram {
 public:
  static constexpr uint64_t kNanosMax = 1'000'000'000;  // what took longer counts as this

  void record(uint64_t nanos);
  uint64_t count() const;
  // The highest value of the bucket in which so much of all lies; 0 when there is nothing.
  uint64_t percentile(double percent) const;
  // How many took no longer, to a sixteenth.
  uint64_t count_up_to(uint64_t nanos) const;
  void reset();

 private:
  static constexpr int kSubBits = 4;
  static constexpr uint64_t kSub = 1u << kSubBits;
  static constexpr size_t bucket_of(uint64_t nanos) {
    if (nanos < kSub) return nanos;
    const int shift = std::bit_width(nanos) - 1 - kSubBits;
    return (static_cast<size_t>(shift) + 1) * kSub + ((nanos >> shift) - kSub);
  }
  static constexpr uint64_t highest_in(size_t bucket) {
    if (bucket < kSub) return bucket;
    const size_t shift = bucket / kSub - 1;
    return ((kSub + bucket % kSub + 1) << shift) - 1;
  }
  static constexpr size_t kBuckets = (std::bit_width(kNanosMax) - kSubBits + 1) * kSub;

  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
};

}  // namespace ingot::metrics
