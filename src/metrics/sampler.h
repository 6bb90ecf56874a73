// Rates for INFO: how fast counters grew during the last second and a half.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ingot::metrics {

// What is measured; each a total that only grows, but for CONFIG RESETSTAT.
enum class Meter : uint8_t { kCommands, kBytesIn, kBytesOut, kReaderBusyMicros, kWriterBusyMicros };
inline constexpr size_t kMeterCount = 5;
using MeterTotals = std::array<uint64_t, kMeterCount>;

// Any thread.
class Sampler {
 public:
  static constexpr int64_t kPeriodMs = 100;  // how often sample() wants to be called

  // `now_ms`: of any clock that does not go back.
  void sample(int64_t now_ms, const MeterTotals& totals);
  // 0 until there are two samples, and while a counter that was reset is below its old total.
  double per_second(Meter meter) const;

 private:
  static constexpr size_t kSamples = 16;
  struct Sample {
    int64_t at_ms = 0;
    MeterTotals totals{};
  };

  mutable std::mutex mutex_;
  std::array<Sample, kSamples> samples_{};  // a ring; by mutex_
  size_t taken_ = 0;                        // by mutex_
};

}  // namespace ingot::metrics
