// `reader-threads auto`: measures the disk and gives the pool as many threads as get nearly all of
// it.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "src/data/reader_pool.h"

namespace ingot::server {

class ReaderTuner {
 public:
  // Of the disk under `directory`. Both threads that call follow() in turn and the pool's other
  // owners agree among themselves; `pool` outlives this.
  ReaderTuner(data::ReaderPool& pool, std::string directory)
      : pool_(pool), directory_(std::move(directory)) {}
  ~ReaderTuner() { stop(); }
  ReaderTuner(const ReaderTuner&) = delete;
  ReaderTuner& operator=(const ReaderTuner&) = delete;

  // So many threads; kAuto: as many as a measurement finds, which takes some two seconds on a
  // thread of its own. One thread at a time.
  static constexpr int kAuto = 0;
  static constexpr int kUntilMeasured = 10;
  void follow(int reader_threads);

 private:
  void stop();
  void measure();

  data::ReaderPool& pool_;
  const std::string directory_;
  std::atomic<bool> stopping_ = false;
  std::thread measuring_;
};

}  // namespace ingot::server
