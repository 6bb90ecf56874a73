// LATENCY: what took longer than latency-monitor-threshold, by the kind of event, one sample for
// each second in which that happened.
//
// Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::metrics {

// The events. The first two are Redis'; a command's time has the others in it or behind it.
namespace latency {
inline constexpr std::string_view kCommand = "command";           // the work of a command
inline constexpr std::string_view kFastCommand = "fast-command";  // of one that should be fast
inline constexpr std::string_view kQueue = "queue";               // from its arrival until it began
inline constexpr std::string_view kDiskRead =
    "disk-read";  // from a miss in memory to the run that answered
inline constexpr std::string_view kCommit = "commit";  // writing a group to the log
inline constexpr std::string_view kExpireCycle = "expire-cycle";
}  // namespace latency

class LatencyMonitor {
 public:
  static constexpr size_t kSamplesMax = 160;
  struct Sample {
    int64_t at_s = 0;  // Unix
    uint64_t ms = 0;   // the longest in that second
  };
  struct Event {
    std::deque<Sample> samples;  // the oldest first
    uint64_t max_ms = 0;         // of all time
  };

  void set_threshold_ms(uint64_t ms) { threshold_ms_.store(ms, std::memory_order_relaxed); }
  uint64_t threshold_ms() const { return threshold_ms_.load(std::memory_order_relaxed); }
  // Notes it if it was long enough. `event` is static.
  void note(std::string_view event, std::chrono::nanoseconds took) {
    const uint64_t threshold = threshold_ms();
    if (threshold == 0 || took < std::chrono::milliseconds(threshold)) return;
    add(event, took);
  }

  std::map<std::string_view, Event> events() const;
  std::optional<Event> find(std::string_view event) const;
  bool forget(std::string_view event);  // true when there was one
  size_t forget_all();                  // how many there were

 private:
  void add(std::string_view event, std::chrono::nanoseconds took);

  std::atomic<uint64_t> threshold_ms_{0};
  mutable std::mutex mutex_;
  std::map<std::string_view, Event> events_;  // by mutex_
};

}  // namespace ingot::metrics
