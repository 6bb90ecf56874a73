// What LevelDB cannot do, and says; and the keys in the indexes of its tables.
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/slice.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/leveldb/short_separators.h"
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

TEST_CASE("LevelDB: who writes much gives way while level 0 is long") {
  constexpr uint64_t kLong = 8;
  EngineOptions options = TestEngine::small_options();
  options.cache_bytes = 8 << 20;  // memtables of a megabyte
  TestEngine engine("leveldb", options);
  const auto level0 = [&] {
    const auto levels = engine->levels();
    return levels.empty() ? 0 : levels.front().files;
  };
  std::mt19937_64 random(1);
  std::string value(4096, 0);
  for (int i = 0; i < 3000 && level0() < kLong; ++i) {
    const auto batch = engine->new_batch();
    for (int j = 0; j < 100; ++j) {
      for (char& each : value) each = static_cast<char>(random());
      batch->put(Space::kMeta, std::to_string(random()), value);
    }
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  }
  REQUIRE(level0() >= kLong);
  const auto begin = std::chrono::steady_clock::now();
  engine->give_way();
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK((level0() < kLong || waited >= std::chrono::milliseconds(250)));
}

TEST_CASE("LevelDB: a mark parts the spaces, which no cursor shows and no directory lacks") {
  TestEngine engine("leveldb");
  REQUIRE(engine.put(Space::kMeta, "k", "v").ok());
  const auto raw = [&] {
    leveldb::DB* db = nullptr;
    REQUIRE(leveldb::DB::Open({}, engine.options().path, &db).ok());
    return std::unique_ptr<leveldb::DB>(db);
  };
  engine.close();
  for (const Space space : kAllSpaces) {  // a directory of an older build
    REQUIRE(raw()->Delete({}, std::string(1, static_cast<char>(space))).ok());
  }
  engine.reopen();
  for (const Space space : kAllSpaces) {
    const Records kept = space == Space::kMeta ? Records{{"k", "v"}} : Records{};
    CHECK(engine.scan(space) == kept);
    CHECK(engine.scan_backwards(space) == kept);
  }
  engine.close();
  const auto db = raw();
  const std::unique_ptr<leveldb::Iterator> at(db->NewIterator({}));
  for (const Space space : kAllSpaces) {
    at->Seek(std::string(1, static_cast<char>(space)));
    REQUIRE(at->Valid());
    CHECK(at->key().ToString() == std::string(1, static_cast<char>(space)));
  }
}

TEST_CASE("LevelDB: what stands in a damaged block is an error, and not passed over") {
  TestEngine engine("leveldb");
  constexpr int kKeys = 5000;
  const auto name = [](int i) { return std::to_string(10'000 + i); };
  for (int i = 0; i < kKeys; ++i) {
    REQUIRE(engine.put(Space::kData, name(i), std::string(100, 'v')).ok());
  }
  REQUIRE(engine->flush().ok());
  REQUIRE(engine->compact(Space::kData, {}).ok());
  engine.close();
  for (const auto& entry : std::filesystem::directory_iterator(engine.options().path)) {
    if (entry.path().extension() != ".ldb") continue;
    const auto bytes = static_cast<std::streamoff>(entry.file_size());
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(bytes / 3).write("damage", 6);
  }
  engine.reopen();
  int errors = 0;
  for (const bool forward : {true, false}) {
    for (int at = 0; at < kKeys; at += 7) {
      const auto cursor = engine->new_cursor(Space::kData, {});
      forward ? cursor->seek(name(at)) : cursor->seek_for_prev(name(at));
      for (int steps = 0; steps < 60; ++steps) {
        const int expected = forward ? at + steps : at - steps;
        if (expected < 0 || expected == kKeys) break;
        if (!cursor->valid()) {
          REQUIRE_FALSE(cursor->status().ok());
          ++errors;
          break;
        }
        REQUIRE(cursor->key() == name(expected));
        forward ? cursor->next() : cursor->prev();
      }
    }
  }
  CHECK(errors > 0);
}

TEST_CASE("LevelDB: what stands between two keys in an index is short") {
  const auto between = [](std::string start, const std::string& limit) {
    short_separators()->FindShortestSeparator(&start, limit);
    return start;
  };
  const std::string tail(1000, 'x');
  CHECK(between("k1" + tail, "k2" + tail) == "k2");
  CHECK(between("k1" + tail, "k2") == "k1y");
  CHECK(between("k1\xff\xff" + tail, "k2") == "k1\xff\xffy");
  CHECK(between("k1\xff\xff", "k2") == "k1\xff\xff");
  CHECK(between("k1" + tail, "k7") == "k2");
  CHECK(between("k", "k1") == "k");

  std::mt19937 random(1);
  const auto make = [&] {
    std::string key(random() % 6, '\0');
    for (char& byte : key) byte = "\x00\x01\x02\xfe\xff"[random() % 5];
    return key;
  };
  for (int i = 0; i < 100'000; ++i) {
    const std::string start = make();
    const std::string limit = make();
    if (start >= limit) continue;
    const std::string found = between(start, limit);
    REQUIRE((start <= found && found < limit && found.size() <= start.size()));
  }
}

}  // namespace ingot::storage
