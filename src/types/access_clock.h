// When keys were last used, and how often; see AccessClock in keyspace.h. Any thread: uses that
// meet in one slot may be counted once.
#pragma once

#include <algorithm>
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

  // Redis' counting of uses (lfu-log-factor, lfu-decay-time): the larger a counter, the less likely
  // a use raises it; each `decay_minutes` without one takes one off (0: never).
  struct Counting {
    bool on = false;
    uint32_t log_factor = 10;
    uint32_t decay_minutes = 1;
  };
  void count_uses(const Counting& how) {
    log_factor_.store(how.log_factor, std::memory_order_relaxed);
    decay_minutes_.store(how.decay_minutes, std::memory_order_relaxed);
    counts_.store(how.on, std::memory_order_relaxed);
  }

  // The key has been read or changed.
  void mark(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    used(slot_of(keyspace, key)).store(second_of(now_ms), std::memory_order_relaxed);
  }
  // It was looked up as well, which counts. Whether that is wanted.
  bool use(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    mark(keyspace, key, now_ms);
    if (!counts_.load(std::memory_order_relaxed)) return false;
    count_use(slot_of(keyspace, key), now_ms);
    return true;
  }
  // It is new.
  void begin(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    mark(keyspace, key, now_ms);
    if (counts_.load(std::memory_order_relaxed)) {
      set_frequency(keyspace, key, kNewFrequency, now_ms);
    }
  }

  // Seconds since the key was used, or since the clock started if it was not.
  int64_t idle_seconds(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    const uint32_t used_s = used(slot_of(keyspace, key)).load(std::memory_order_relaxed);
    return std::max<int64_t>(0, int64_t{second_of(now_ms)} - (used_s == 0 ? kStart : used_s));
  }
  void set_idle_seconds(storage::KeyspaceId keyspace, std::string_view key, int64_t idle_s,
                        int64_t now_ms) {
    const int64_t used_s = second_of(now_ms) - std::min<int64_t>(idle_s, kStart);
    used(slot_of(keyspace, key)).store(static_cast<uint32_t>(used_s), std::memory_order_relaxed);
  }

  // The counter of the key's uses, 0 to 255.
  uint32_t frequency(storage::KeyspaceId keyspace, std::string_view key, int64_t now_ms) {
    return frequency_of(slot_of(keyspace, key), now_ms);
  }
  void set_frequency(storage::KeyspaceId keyspace, std::string_view key, uint32_t frequency,
                     int64_t now_ms) {
    counter(slot_of(keyspace, key))
        .store(minute_of(now_ms) << 8 | frequency, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kNewFrequency = 5;
  static constexpr uint32_t kFrequencyMax = 255;
  static constexpr uint32_t kStart = 1u << 31;  // so RESTORE may say that a key is older than this
  static constexpr size_t kSlots = 1u << 20;    // 4 MB each, touched only where keys hash to
  struct Free {
    void operator()(uint32_t* slots) const { std::free(slots); }
  };
  // calloc() leaves pages alone that the system gave as zeros.
  using Slots = std::unique_ptr<uint32_t[], Free>;
  static Slots make_slots() {
    return Slots(static_cast<uint32_t*>(std::calloc(kSlots, sizeof(uint32_t))));
  }

  static size_t slot_of(storage::KeyspaceId keyspace, std::string_view key) {
    const size_t hash =
        std::hash<std::string_view>{}(key) ^ (size_t{keyspace} * 0x9e3779b97f4a7c15u);
    return hash & (kSlots - 1);
  }
  std::atomic_ref<uint32_t> used(size_t slot) { return std::atomic_ref(used_[slot]); }
  std::atomic_ref<uint32_t> counter(size_t slot) { return std::atomic_ref(counters_[slot]); }
  uint32_t second_of(int64_t now_ms) const {
    return static_cast<uint32_t>(now_ms / 1000 - start_s_ + kStart);
  }
  // 24 bits, of which none is 0.
  uint32_t minute_of(int64_t now_ms) const {
    return static_cast<uint32_t>((now_ms / 1000 - start_s_) / 60 + 1) & 0xffffff;
  }

  uint32_t frequency_of(size_t slot, int64_t now_ms) {
    const uint32_t value = counter(slot).load(std::memory_order_relaxed);
    if (value == 0) return kNewFrequency;
    const uint32_t decay_minutes = decay_minutes_.load(std::memory_order_relaxed);
    if (decay_minutes == 0) return value & 0xff;
    const uint32_t minute = minute_of(now_ms);
    const uint32_t since = minute - std::min(minute, value >> 8);
    return (value & 0xff) - std::min(value & 0xff, since / decay_minutes);
  }

  void count_use(size_t slot, int64_t now_ms) {
    const uint32_t frequency = frequency_of(slot, now_ms);
    const uint64_t above = frequency - std::min(frequency, kNewFrequency);
    const uint64_t one_in = above * log_factor_.load(std::memory_order_relaxed) + 1;
    const bool rises = frequency < kFrequencyMax && (one_in == 1 || draw() % one_in == 0);
    counter(slot).store(minute_of(now_ms) << 8 | (frequency + (rises ? 1 : 0)),
                        std::memory_order_relaxed);
  }
  static uint64_t draw() {
    thread_local uint64_t state = 0x9e3779b97f4a7c15u ^ reinterpret_cast<uintptr_t>(&state);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }

  const int64_t start_s_;
  std::atomic<bool> counts_{false};
  std::atomic<uint32_t> log_factor_{10};
  std::atomic<uint32_t> decay_minutes_{1};
  Slots used_ = make_slots();      // seconds; 0: never
  Slots counters_ = make_slots();  // a minute and a counter; 0: nothing was counted
};

}  // namespace ingot::types
