// An engine under test in a directory of its own, and short ways to use it.
#include "tests/storage/test_engine.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

namespace ingot::storage {

TestEngine::TestEngine(std::string name, EngineOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  options_.path = directory_.file("db");
  engine_ = must_open(name_, options_);
}

EngineOptions TestEngine::small_options() {
  EngineOptions options;
  options.cache_bytes = 16 << 20;
  return options;
}

void TestEngine::reopen() {
  if (!persistent()) return;
  close();
  engine_ = must_open(name_, options_);
}

Status TestEngine::put(Space space, std::string_view key, std::string_view value,
                       Durability durability) {
  const auto batch = engine_->new_batch();
  batch->put(space, key, value);
  return engine_->write(*batch, durability);
}

Status TestEngine::remove(Space space, std::string_view key) {
  const auto batch = engine_->new_batch();
  batch->remove(space, key);
  return engine_->write(*batch, Durability::kBuffered);
}

std::string TestEngine::get(Space space, std::string_view key, const Snapshot* snapshot,
                            Tier tier) {
  std::string value;
  const Lookup lookup = engine_->get(snapshot, space, key, tier, &value, nullptr);
  return describe(lookup, value);
}

Records TestEngine::scan(Space space, const CursorOptions& options) {
  Records records;
  const auto cursor = engine_->new_cursor(space, options);
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    records.emplace_back(cursor->key(), cursor->value());
  }
  CHECK(cursor->outcome() == Lookup::kFound);
  return records;
}

Records TestEngine::scan_backwards(Space space, const CursorOptions& options) {
  Records records;
  const auto cursor = engine_->new_cursor(space, options);
  for (cursor->seek_for_prev(std::string(300, '\xff')); cursor->valid(); cursor->prev()) {
    records.emplace_back(cursor->key(), cursor->value());
  }
  CHECK(cursor->outcome() == Lookup::kFound);
  return records;
}

std::unique_ptr<Engine> must_open(const std::string& name, const EngineOptions& options) {
  auto [engine, status] = open_engine(name, options);
  INFO(status.message());
  REQUIRE(status.ok());
  REQUIRE(engine != nullptr);
  return std::move(engine);
}

std::string describe(Lookup lookup, const std::string& value) {
  switch (lookup) {
    case Lookup::kFound:
      return value;
    case Lookup::kAbsent:
      return "<absent>";
    case Lookup::kMiss:
      return "<miss>";
    case Lookup::kError:
      break;
  }
  return "<error>";
}

std::string element_key(uint64_t id, std::string_view element) {
  std::string key;
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(id >> shift));
  return key.append(element);
}

KeyRange element_range(uint64_t id) {
  return {element_key(id, ""), element_key(id + 1, "")};
}

std::string noise(size_t bytes, uint64_t seed) {
  // SplitMix64, eight bytes at a time: a Mersenne Twister is seeded for longer than most values
  // take.
  std::string text(bytes, 0);
  for (size_t at = 0; at < bytes; at += sizeof(seed)) {
    uint64_t mixed = seed += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    mixed ^= mixed >> 31;
    std::memcpy(&text[at], &mixed, std::min(sizeof(mixed), bytes - at));
  }
  return text;
}

}  // namespace ingot::storage
