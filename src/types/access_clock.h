// When keys were last used; see AccessClock in keyspace.h. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "storage/codec.h"

namespace ingot::types {

class AccessClock {
 public:
  explicit AccessClock(int64_t now_ms) : start_s_(now_ms / 1000) {}

  void mark(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    slot(keyspace, key)
        .store(static_cast<uint32_t>(now_ms / 1000 - start_s_ + 1), std::memory_order_relaxed);
  }
  // Seconds since the key was used, or since the clock started if it was not.
  int64_t idle_seconds(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    int64_t used_s = slot(keyspace, key).load(std::memory_order_relaxed);
    if (used_s > 0) --used_s;
    return std::max<int64_t>(0, now_ms / 1000 - start_s_ - used_s);
  }

 private:
  static constexpr size_t kSlots = 1u << 20;  // 4 MB, touched only where keys hash to
  struct Free {
    void operator()(uint32_t* slots) const { std::free(slots); }
  };
  std::atomic_ref<uint32_t> slot(storage::KeyspaceId keyspace, std::string_view key) {
    size_t hash = std::hash<std::string_view>{}(key) ^ (size_t{keyspace} * 0x9e3779b97f4a7c15u);
    return std::atomic_ref(slots_[hash & (kSlots - 1)]);
  }

  int64_t start_s_;
  // calloc() leaves pages alone that the system gave as zeros.
  std::unique_ptr<uint32_t[], Free> slots_{
      static_cast<uint32_t*>(std::calloc(kSlots, sizeof(uint32_t)))};
};

}  // namespace ingot::types
