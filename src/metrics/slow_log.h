// SLOWLOG: the commands that took longest to be worked on, the latest first. The oldest are
// forgotten beyond slowlog-max-len, and beyond kBytesMax of memory.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::metrics {

class SlowLog {
 public:
  static constexpr size_t kBytesMax = 16 << 20;

  struct Entry {
    uint64_t id = 0;
    int64_t at_s = 0;  // Unix
    int64_t micros = 0;
    std::vector<std::string> args;  // shortened
    std::string address;
    std::string client_name;
  };
  using EntryPtr = std::shared_ptr<const Entry>;

  // `slower_than` in microseconds, negative: nothing.
  void configure(int64_t slower_than, size_t entries_max);
  bool wants(int64_t micros) const {
    const int64_t limit = slower_than_.load(std::memory_order_relaxed);
    return limit >= 0 && micros >= limit;
  }
  void add(Entry entry);  // its id is chosen here
  std::vector<EntryPtr> latest(size_t count) const;
  size_t size() const;
  void clear();

 private:
  std::atomic<int64_t> slower_than_{10'000};
  mutable std::mutex mutex_;
  // By mutex_:
  std::deque<EntryPtr> entries_;  // the latest in front
  size_t bytes_ = 0;              // of entries_
  size_t entries_max_ = 128;
  uint64_t next_id_ = 0;
};

}  // namespace ingot::metrics
