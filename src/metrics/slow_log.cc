// Keeping as many entries as slowlog-max-len says.
#include "src/metrics/slow_log.h"

#include <algorithm>
#include <utility>

namespace ingot::metrics {

void SlowLog::configure(int64_t slower_than, size_t entries_max) {
  slower_than_.store(slower_than, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  entries_max_ = entries_max;
}

void SlowLog::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::make_shared<const Entry>(std::move(entry)));
  while (entries_.size() > entries_max_) entries_.pop_back();
}

std::vector<SlowLog::EntryPtr> SlowLog::latest(size_t count) const {
  const std::lock_guard lock(mutex_);
  const auto wanted = static_cast<ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), entries_.begin() + wanted};
}

size_t SlowLog::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void SlowLog::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace ingot::metrics
