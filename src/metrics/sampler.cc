// A ring of samples; a rate is the difference of its newest and its oldest.
#include "src/metrics/sampler.h"

#include <algorithm>

namespace ingot::metrics {

void Sampler::sample(int64_t now_ms, const MeterTotals& totals) {
  std::lock_guard lock(mutex_);
  samples_[taken_++ % kSamples] = {now_ms, totals};
}

double Sampler::per_second(Meter meter) const {
  std::lock_guard lock(mutex_);
  if (taken_ < 2) return 0;
  const Sample& newest = samples_[(taken_ - 1) % kSamples];
  const Sample& oldest = samples_[(taken_ - std::min(taken_, kSamples)) % kSamples];
  const uint64_t now = newest.totals[static_cast<size_t>(meter)];
  const uint64_t then = oldest.totals[static_cast<size_t>(meter)];
  if (now <= then || newest.at_ms <= oldest.at_ms) return 0;
  return static_cast<double>(now - then) * 1000 / static_cast<double>(newest.at_ms - oldest.at_ms);
}

}  // namespace ingot::metrics
