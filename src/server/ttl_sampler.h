// The average time that keys have yet to live, for INFO keyspace: an estimate, as in Redis. A task
// of the reader pool looks at some keys, and only when somebody has asked. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "src/data/services.h"
#include "storage/spaces.h"

namespace ingot::server {

class TtlSampler : public std::enable_shared_from_this<TtlSampler> {
 public:
  explicit TtlSampler(const data::Services& services) : services_(services) {}

  // In milliseconds; 0: no key that expires was met yet.
  int64_t average_ms(storage::KeyspaceId keyspace) const;
  // Once in a while, which is soon enough for whoever asks again and again.
  void look_again();

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  const data::Services& services_;
  std::atomic<bool> running_{false};
  mutable std::mutex mutex_;
  // By mutex_:
  Clock::time_point looked_at_;  // never: the epoch
  std::map<storage::KeyspaceId, double> averages_ms_;
};

}  // namespace ingot::server
