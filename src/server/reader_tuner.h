// `reader-threads auto`: measures the disk and gives the pool as many threads as get nearly all of
// it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "src/data/reader_pool.h"

namespace ingot::server {

class ReaderTuner {
 public:
  // Of the disk under `directory`. `pool` outlives this, and nobody else resizes it.
  ReaderTuner(data::ReaderPool& pool, std::string directory)
      : pool_(pool), directory_(std::move(directory)) {}
  ~ReaderTuner();
  ReaderTuner(const ReaderTuner&) = delete;
  ReaderTuner& operator=(const ReaderTuner&) = delete;

  // So many threads; kAuto: as many as a measurement finds, which takes some two seconds on a
  // thread of its own. One thread at a time; does not wait for a measurement but to begin another.
  static constexpr int kAuto = 0;
  static constexpr int kUntilMeasured = 10;
  // False: the system gives the process no threads for that.
  [[nodiscard]] bool follow(int reader_threads);

 private:
  void measure();

  data::ReaderPool& pool_;
  const std::string directory_;
  std::mutex mutex_;                    // held while the pool is resized
  std::atomic<bool> stopping_ = false;  // what is being measured is not wanted any more
  std::thread measuring_;
};

}  // namespace ingot::server
