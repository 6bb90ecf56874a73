// Keeping the longest of each second, for each kind of event.
#include "src/metrics/latency_monitor.h"

#include <algorithm>

namespace ingot::metrics {

void LatencyMonitor::add(std::string_view name, std::chrono::nanoseconds took) {
  using std::chrono::duration_cast;
  const auto ms = static_cast<uint64_t>(duration_cast<std::chrono::milliseconds>(took).count());
  const int64_t now_s =
      duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::lock_guard lock(mutex_);
  Event& event = events_[name];
  event.max_ms = std::max(event.max_ms, ms);
  if (!event.samples.empty() && event.samples.back().at_s == now_s) {
    event.samples.back().ms = std::max(event.samples.back().ms, ms);
    return;
  }
  event.samples.push_back({.at_s = now_s, .ms = ms});
  if (event.samples.size() > kSamplesMax) event.samples.pop_front();
}

std::map<std::string_view, LatencyMonitor::Event> LatencyMonitor::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::optional<LatencyMonitor::Event> LatencyMonitor::find(std::string_view event) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  return found == events_.end() ? std::nullopt : std::optional(found->second);
}

bool LatencyMonitor::forget(std::string_view event) {
  const std::lock_guard lock(mutex_);
  return events_.erase(event) != 0;
}

size_t LatencyMonitor::forget_all() {
  const std::lock_guard lock(mutex_);
  const size_t count = events_.size();
  events_.clear();
  return count;
}

}  // namespace ingot::metrics
