// What LevelDB cannot do, and says.
#include <catch2/catch.hpp>

#include "tests/storage/test_engine.h"

namespace ingot::storage {

TEST_CASE("LevelDB: cache-only reads are misses, whatever they ask for") {
  TestEngine engine("leveldb");
  CHECK_FALSE(engine->capabilities().probe);
  REQUIRE(engine.put(Space::kMeta, "k", "v").ok());
  CHECK(engine.peek(Space::kMeta, "k") == "<miss>");
  CHECK(engine.peek(Space::kMeta, "absent") == "<miss>");
  CursorOptions options;
  options.tier = Tier::kCacheOnly;
  const auto cursor = engine->new_cursor(Space::kMeta, options);
  CHECK(cursor->outcome() == Lookup::kFound);
  cursor->seek("");
  CHECK_FALSE(cursor->valid());
  CHECK(cursor->outcome() == Lookup::kMiss);
}

TEST_CASE("LevelDB: says which compression it takes instead, and that its cache stays") {
  EngineOptions options = TestEngine::small_options();
  std::vector<std::string> lines;
  options.on_log = [&](const std::string& line) { lines.push_back(line); };
  options.compression = "zstd";
  TestEngine engine("leveldb", options);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].contains("zstd"));
  CHECK(lines[0].contains("snappy"));
  engine->set_cache_bytes(1 << 20);
  CHECK(lines.size() == 2);
  CHECK(engine->stats().cache_capacity == options.cache_bytes);
}

}  // namespace ingot::storage
