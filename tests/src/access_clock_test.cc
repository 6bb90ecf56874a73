// When keys were used, and the counters of their uses with factor and decay.
#include "src/types/access_clock.h"

#include <catch2/catch.hpp>

namespace ingot::types {
namespace {

constexpr int64_t kMinuteMs = 60'000;

TEST_CASE("a key is idle since it was used, or since the clock began") {
  int64_t now_ms = 1'700'000'000'000;
  AccessClock clock(now_ms);
  now_ms += 5000;
  CHECK(clock.idle_seconds(1, "k", now_ms) == 5);
  clock.mark(1, "k", now_ms);
  now_ms += 3000;
  CHECK(clock.idle_seconds(1, "k", now_ms) == 3);
  CHECK(clock.idle_seconds(2, "k", now_ms) == 8);
  clock.set_idle_seconds(1, "k", 1000, now_ms);
  CHECK(clock.idle_seconds(1, "k", now_ms) == 1000);
  clock.set_idle_seconds(1, "k", INT64_MAX, now_ms);
  CHECK(clock.idle_seconds(1, "k", now_ms) > 1'000'000'000);
}

TEST_CASE("uses are counted only while that is wanted") {
  int64_t now_ms = 1'700'000'000'000;
  AccessClock clock(now_ms);
  clock.use(1, "k", now_ms);
  CHECK(clock.frequency(1, "k", now_ms) == 5);
  clock.count_uses({.on = true, .log_factor = 0, .decay_minutes = 1});
  for (int i = 0; i < 3; ++i) clock.use(1, "k", now_ms);
  CHECK(clock.frequency(1, "k", now_ms) == 8);
  clock.begin(1, "k", now_ms);
  CHECK(clock.frequency(1, "k", now_ms) == 5);
  for (int i = 0; i < 1000; ++i) clock.use(1, "k", now_ms);
  CHECK(clock.frequency(1, "k", now_ms) == 255);
}

TEST_CASE("a counter decays with the time in which nobody uses the key") {
  int64_t now_ms = 1'700'000'000'000;
  AccessClock clock(now_ms);
  clock.count_uses({.on = true, .log_factor = 0, .decay_minutes = 2});
  clock.set_frequency(1, "k", 100, now_ms);
  now_ms += 10 * kMinuteMs;
  CHECK(clock.frequency(1, "k", now_ms) == 95);
  now_ms += 1000 * kMinuteMs;
  CHECK(clock.frequency(1, "k", now_ms) == 0);
  clock.count_uses({.on = true, .log_factor = 0, .decay_minutes = 0});
  CHECK(clock.frequency(1, "k", now_ms) == 100);
}

TEST_CASE("with a factor a counter rises with the logarithm of the uses") {
  const int64_t now_ms = 1'700'000'000'000;
  AccessClock clock(now_ms);
  clock.count_uses({.on = true, .log_factor = 10, .decay_minutes = 0});
  clock.begin(1, "k", now_ms);
  for (int i = 0; i < 1000; ++i) clock.use(1, "k", now_ms);
  const uint32_t after_thousand = clock.frequency(1, "k", now_ms);
  for (int i = 0; i < 99'000; ++i) clock.use(1, "k", now_ms);
  const uint32_t after_hundred_thousand = clock.frequency(1, "k", now_ms);
  // What Redis' table of measurements says: 18 and 142.
  CHECK(after_thousand > 10);
  CHECK(after_thousand < 30);
  CHECK(after_hundred_thousand > 110);
  CHECK(after_hundred_thousand < 175);
}

}  // namespace
}  // namespace ingot::types
