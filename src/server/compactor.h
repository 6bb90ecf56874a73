// BGREWRITEAOF: the engine writes all that it has anew, without what is outdated or dead, on a
// thread of its own. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "src/contract/running_server.h"
#include "storage/engine.h"

namespace ingot::server {

class Compactor {
 public:
  explicit Compactor(storage::Engine& engine);
  ~Compactor();  // gives up what is at hand
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  // kBusy: it is at it. What is written anew takes space before it gives any back: with less than
  // `free_bytes_min` left beside that the work fails before it has begun.
  storage::Status start(const std::string& directory, uint64_t free_bytes_min);
  contract::BackgroundWork state() const;

 private:
  using Clock = std::chrono::steady_clock;
  storage::Status run(const std::string& directory, uint64_t free_bytes_min);

  storage::Engine& engine_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  // By mutex_:
  contract::BackgroundWork state_;  // without running_s
  Clock::time_point begun_;
  std::thread thread_;
};

}  // namespace ingot::server
