// Walks over keys and random keys, on every engine.
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/types/key_walk.h"
#include "storage/codec.h"
#include "storage/reader.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

constexpr storage::KeyspaceId kKeyspace = 0x1ff;  // ends in a byte that carries
constexpr std::string_view kHighKeys[] = {"\xff", "\xff\xff", "\xff\xff\x01"};

class Keys {
 public:
  explicit Keys(const std::string& engine) : store_(engine) {
    // Of the neighbours nothing must ever be seen.
    add("neighbour", kKeyspace - 1);
    add("neighbour", kKeyspace + 1);
    add("", kKeyspace + 1);
  }
  void add(std::string_view key, storage::KeyspaceId keyspace = kKeyspace) {
    std::string record;
    storage::encode_metadata({.payload = "value"}, &record);
    put(key, keyspace, record);
  }
  void put(std::string_view key, storage::KeyspaceId keyspace, std::string_view record) {
    store_.overlay().put(storage::Space::kMeta, storage::meta_key(keyspace, key), record);
  }
  // What has been put is on the engine from now on.
  storage::EngineReader reader() {
    if (!store_.overlay().empty()) store_.commit();
    return {store_.engine(), nullptr, storage::Tier::kDisk};
  }

 private:
  TypedStore store_;
};

std::vector<std::string> names(KeyWalk& walk) {
  std::vector<std::string> found;
  for (; walk.valid(); walk.next()) found.emplace_back(walk.key());
  return found;
}

TEST_CASE("a walk sees the keys with its prefix and no others", "[keywalk]") {
  Keys keys(each_engine());
  for (const char* key : {"", "a", "b", "b:1", "b:2", "b;", "c"}) keys.add(key);
  for (const std::string_view key : kHighKeys) keys.add(key);
  auto reader = keys.reader();
  {
    KeyWalk walk(reader, kKeyspace, "b:");
    walk.seek_first();
    CHECK(names(walk) == std::vector<std::string>{"b:1", "b:2"});
    walk.seek_last();
    CHECK(walk.key() == "b:2");
    storage::Metadata metadata;
    REQUIRE(walk.read(&metadata));
    CHECK(metadata.payload == "value");
    walk.seek_behind("a");  // before the prefix
    CHECK(walk.key() == "b:1");
    walk.seek_behind("b:1");
    CHECK(walk.key() == "b:2");
    walk.seek_behind("b:2");
    CHECK_FALSE(walk.valid());
  }
  KeyWalk walk(reader, kKeyspace, {});
  walk.seek_first();
  CHECK(names(walk).size() == 10);
  walk.seek_last();
  CHECK(walk.key() == kHighKeys[2]);
  walk.seek_last_of("b:");
  CHECK(walk.key() == "b:2");
  walk.seek_last_of("b");
  CHECK(walk.key() == "b;");
  walk.seek_back("b:15");
  CHECK(walk.key() == "b:1");
  walk.seek_behind("");
  CHECK(walk.key() == "a");
}

TEST_CASE("an unreadable record latches", "[keywalk]") {
  Keys keys(each_engine());
  keys.put("k", kKeyspace, "?");
  auto reader = keys.reader();
  KeyWalk walk(reader, kKeyspace, {});
  walk.seek_first();
  REQUIRE(walk.valid());
  storage::Metadata metadata;
  CHECK_FALSE(walk.read(&metadata));
  CHECK(reader.error().code() == storage::Status::Code::kCorruption);
  CHECK_FALSE(walk.valid());
}

std::string chosen(Keys& keys, std::mt19937_64& random) {
  auto reader = keys.reader();
  KeyWalk walk(reader, kKeyspace, {});
  seek_random(walk, random);
  return walk.valid() ? std::string(walk.key()) : "(none)";
}

TEST_CASE("a random key of none, one and few", "[keywalk]") {
  Keys keys(each_engine());
  std::mt19937_64 random(1);
  CHECK(chosen(keys, random) == "(none)");
  keys.add("only");
  CHECK(chosen(keys, random) == "only");
  for (const std::string_view key : kHighKeys) keys.add(key);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) seen.insert(chosen(keys, random));
  CHECK(seen.size() == 4);
}

// How often each of `buckets` was drawn, by the digit at `at`.
std::map<char, int> drawn(Keys& keys, size_t at, int draws) {
  std::mt19937_64 random(2);
  std::map<char, int> buckets;
  for (int i = 0; i < draws; ++i) ++buckets[chosen(keys, random).at(at)];
  return buckets;
}

TEST_CASE("random keys are spread over many like ones", "[keywalk]") {
  Keys keys(each_engine());
  for (int i = 0; i < 3000; ++i) {
    char name[16];
    std::snprintf(name, sizeof(name), "key:%06d", i * 333);
    keys.add(name);
  }
  constexpr int kDraws = 2000;
  for (const size_t digit : {size_t{4}, size_t{6}}) {
    const auto buckets = drawn(keys, digit, kDraws);
    CHECK(buckets.size() == 10);
    for (const auto& [name, times] : buckets) {
      INFO(name);
      CHECK(times > kDraws / 20);
      CHECK(times < kDraws / 5);
    }
  }
}

TEST_CASE("gaps between keys draw no more than their share", "[keywalk]") {
  Keys keys(each_engine());
  // Hexadecimal digits, whose bytes are not next to each other.
  for (int i = 0; i < 4096; ++i) {
    char name[16];
    std::snprintf(name, sizeof(name), "%03x", i);
    keys.add(name);
  }
  constexpr int kDraws = 4000;
  const auto buckets = drawn(keys, 0, kDraws);
  CHECK(buckets.size() == 16);
  for (const auto& [name, times] : buckets) {
    INFO(name);
    CHECK(times > kDraws / 32);
    CHECK(times < kDraws / 5);
  }
}

TEST_CASE("random keys among keys that begin others", "[keywalk]") {
  Keys keys(each_engine());
  std::string name;
  for (int i = 0; i < 100; ++i) keys.add(name += '\xff');
  keys.add("");
  for (int i = 0; i < 100; ++i) keys.add("\xff\x01" + std::to_string(i));
  std::mt19937_64 random(3);
  std::set<std::string> seen;
  for (int i = 0; i < 3000; ++i) seen.insert(chosen(keys, random));
  CHECK_FALSE(seen.contains("(none)"));
  CHECK(seen.contains(""));
  CHECK(seen.contains("\xff"));
  CHECK(seen.size() > 100);  // all but the deepest, each of which is one in many
}

}  // namespace
}  // namespace ingot::types
