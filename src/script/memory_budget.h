// What all Lua states together may take. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::script {

class MemoryBudget {
 public:
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // False: there is not so much left.
  bool take(uint64_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    give(bytes);
    return false;
  }
  // Of who cannot do without.
  void force(uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> limit_{UINT64_MAX};
};

}  // namespace ingot::script
