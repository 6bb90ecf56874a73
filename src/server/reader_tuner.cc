// The thread that measures the disk and resizes the pool of reader threads by it.
#include "src/server/reader_tuner.h"

#include "src/metrics/log.h"
#include "src/server/process.h"
#include "storage/device_curve.h"

namespace ingot::server {

ReaderTuner::~ReaderTuner() {
  stopping_ = true;
  if (measuring_.joinable()) measuring_.join();
}

bool ReaderTuner::follow(int reader_threads) {
  stopping_ = true;
  if (reader_threads != kAuto) {
    const std::lock_guard lock(mutex_);
    return pool_.resize(reader_threads);
  }
  if (measuring_.joinable()) measuring_.join();
  stopping_ = false;
  return start_thread(&measuring_, [this] { measure(); }).ok();
}

void ReaderTuner::measure() {
  const auto curve = storage::measure_device(directory_, stopping_);
  if (stopping_) return;
  if (curve.empty()) {
    metrics::log::warning("reader-threads auto: the disk cannot be measured, {} threads stay",
                          pool_.threads());
    return;
  }
  const int threads = storage::knee(curve);
  std::string rates;
  for (const storage::DeviceRate& each : curve) {
    rates += fmt::format(" {}: {:.0f}", each.threads, each.reads_per_second);
  }
  metrics::log::notice("reader-threads auto: {} (reads a second by threads:{})", threads, rates);
  const std::lock_guard lock(mutex_);
  if (!stopping_) (void)pool_.resize(threads);
}

}  // namespace ingot::server
