// Latencies, counted in buckets that are 1.6 % wide: quantiles without keeping what was measured.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace generator {

class Histogram {
 public:
  void add(uint64_t value) {
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    max_ = std::max(max_, value);
  }

  void merge(const Histogram& other) {
    for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }

  // The upper end of the bucket in which the value lies that `share` of all are not above; 0 when
  // there is none.
  uint64_t quantile(double share) const {
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen > wanted) return std::min(max_, end_of(i));
    }
    return max_;
  }

 private:
  static constexpr int kBits = 6;  // 64 buckets for each power of two
  static constexpr uint64_t kPart = 1 << kBits;

  // Below 64 each value has a bucket; then the first seven bits tell.
  static size_t bucket_of(uint64_t value) {
    if (value < kPart) return value;
    const int shift = std::bit_width(value) - kBits - 1;
    return static_cast<size_t>(shift) * kPart + (value >> shift);
  }
  static uint64_t end_of(size_t bucket) {
    if (bucket < kPart) return bucket;
    const uint64_t shift = bucket / kPart - 1;
    return ((bucket - shift * kPart + 1) << shift) - 1;
  }

  std::array<uint32_t, (64 - kBits + 1) * kPart> buckets_{};
  uint64_t count_ = 0, sum_ = 0, max_ = 0;
};

}  // namespace generator
