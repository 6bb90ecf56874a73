// Keeping as many entries as slowlog-max-len says, and memory takes.
#include "src/metrics/slow_log.h"

#include <algorithm>
#include <utility>

namespace ingot::metrics {

namespace {

size_t bytes_of(const SlowLog::Entry& entry) {
  size_t bytes = sizeof entry + entry.address.size() + entry.client_name.size();
  for (const std::string& arg : entry.args) bytes += sizeof arg + arg.size();
  return bytes;
}

}  // namespace

void SlowLog::configure(int64_t slower_than, size_t entries_max) {
  slower_than_.store(slower_than, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  entries_max_ = entries_max;
}

void SlowLog::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entry.id = next_id_++;
  bytes_ += bytes_of(entry);
  entries_.push_front(std::make_shared<const Entry>(std::move(entry)));
  while (entries_.size() > entries_max_ || bytes_ > kBytesMax) {
    bytes_ -= bytes_of(*entries_.back());
    entries_.pop_back();
  }
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
  bytes_ = 0;
}

}  // namespace ingot::metrics
