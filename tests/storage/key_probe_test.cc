// Lookups of a key and its elements in memory, without a snapshot: of one state, or not answered.
#include <catch2/catch.hpp>

#include "storage/codec.h"
#include "storage/reader.h"
#include "storage/record_cache.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

std::string record_of(uint32_t revision) {
  std::string record;
  encode_metadata({.type = ValueType::kHash,
                   .collection = Metadata::Collection{.id = 7, .count = 2, .revision = revision}},
                  &record);
  return record;
}

}  // namespace

TEST_CASE("a probe's lookups of a key and its elements are of one state, or it says no",
          "[key_probe]") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine->capabilities().probe) return;
  INFO(engine.name());
  RecordCache cache(GENERATE(0, 1 << 20));
  REQUIRE(engine.put(Space::kMeta, "k", record_of(1)).ok());
  REQUIRE(engine.put(Space::kMeta, "inline", "\x05 packed").ok());
  REQUIRE(engine.put(Space::kData, "e1", "v1").ok());
  const HashedKey record(Space::kMeta, "k");
  const HashedKey element(Space::kData, "e1");
  const auto change = [&] {
    const auto changing_record = cache.begin_change(record);
    const auto changing_element = cache.begin_change(element);
    REQUIRE(engine.put(Space::kData, "e1", "changed").ok());
    REQUIRE(engine.put(Space::kMeta, "k", record_of(2)).ok());
    cache.end_change(record, changing_record, record_of(2));
    cache.end_change(element, changing_element, "changed");
  };
  std::string value;
  for (const bool is_cached : {false, true}) {
    KeyProbe first(*engine, &cache);
    CHECK(first.get(Space::kMeta, "k", &value));
    CHECK(first.confirm());
    INFO(is_cached);
  }
  KeyProbe probe(*engine, &cache);
  REQUIRE(probe.get(Space::kMeta, "k", &value));
  CHECK(value == record_of(1));

  SECTION("nothing has changed") {
    CHECK(probe.get(Space::kData, "e1", &value));
    CHECK(value == "v1");
    CHECK_FALSE(probe.get(Space::kData, "e2", &value));
    CHECK_FALSE(probe.failed());
    CHECK(probe.confirm());
  }
  SECTION("changed before the element was read") {
    change();
    CHECK(probe.get(Space::kData, "e1", &value));
    CHECK(value == "changed");
    CHECK_FALSE(probe.confirm());
    CHECK(probe.needs_snapshot());
  }
  SECTION("changed after the element was read") {
    CHECK(probe.get(Space::kData, "e1", &value));
    change();
    CHECK_FALSE(probe.confirm());
  }
  SECTION("removed meanwhile") {
    const auto changing = cache.begin_change(record);
    REQUIRE(engine.remove(Space::kMeta, "k").ok());
    cache.end_change(record, changing, "");
    CHECK(probe.get(Space::kData, "e1", &value));
    CHECK_FALSE(probe.confirm());
  }
  SECTION("a second key") {
    CHECK_FALSE(probe.get(Space::kMeta, "inline", &value));
    CHECK(probe.missed());
    CHECK(probe.needs_snapshot());
  }
  SECTION("a walk") {
    CHECK_FALSE(probe.cursor(Space::kData, "", "")->valid());
    CHECK(probe.needs_snapshot());
  }
  SECTION("elements of a key that has none of its own") {
    KeyProbe other(*engine, &cache);
    REQUIRE(other.get(Space::kMeta, "inline", &value));
    CHECK_FALSE(other.get(Space::kData, "e1", &value));
    CHECK(other.needs_snapshot());
  }
}

}  // namespace ingot::storage
