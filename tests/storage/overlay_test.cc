// The laws of the overlay: it reads as the engine would after its changes, walks in order both
// ways, and goes back to a savepoint as if nothing had happened. A std::map is the model.
#include "storage/overlay.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "storage/memory/memory_engine.h"
#include "storage/record_cache.h"
#include "tests/storage/test_engine.h"

using namespace ingot::storage;

namespace {

using Model = std::map<std::string, std::string>;

struct Fixture {
  std::unique_ptr<Engine> engine = std::move(open_memory({}).first);
  Overlay overlay{*engine, nullptr, Tier::kDisk};
  Model model;

  void seed(const Model& start) {
    auto batch = engine->new_batch();
    for (const auto& [key, value] : start) batch->put(Space::kMeta, key, value);
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    model = start;
  }

  Model walk_forward() {
    Model found;
    auto cursor = overlay.cursor(Space::kMeta, {}, {});
    for (cursor->seek({}); cursor->valid(); cursor->next()) {
      REQUIRE((found.empty() || found.rbegin()->first < cursor->key()));
      found.emplace(cursor->key(), cursor->value());
    }
    return found;
  }
  Model walk_backward() {
    Model found;
    auto cursor = overlay.cursor(Space::kMeta, {}, {});
    for (cursor->seek_for_prev("\xff"); cursor->valid(); cursor->prev()) {
      REQUIRE((found.empty() || found.begin()->first > cursor->key()));
      found.emplace(cursor->key(), cursor->value());
    }
    return found;
  }
};

// Keeps what it is told, in order.
struct RecordingBatch : Batch {
  struct Told {
    Space space;
    std::string key;
    std::string value;  // empty: removed
    auto operator<=>(const Told&) const = default;
  };
  void put(Space space, std::string_view key, std::string_view value) override {
    told.push_back({space, std::string(key), std::string(value)});
  }
  void remove(Space space, std::string_view key) override {
    told.push_back({space, std::string(key), {}});
  }
  void clear() override { told.clear(); }
  size_t bytes() const override { return 0; }

  std::vector<Told> told;
};

std::string some_key(std::mt19937& random) {
  return "k" + std::to_string(random() % 40);
}

}  // namespace

TEST_CASE("the overlay agrees with a map through changes and undoing", "[overlay]") {
  auto seed = GENERATE(range(1, 21));
  INFO("seed " << seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  Fixture fixture;
  Model start;
  for (int i = 0; i < 20; ++i) start[some_key(random)] = "base";
  fixture.seed(start);
  std::vector<std::pair<Overlay::Savepoint, Model>> savepoints;
  for (int step = 0; step < 300; ++step) {
    std::string key = some_key(random);
    switch (random() % 6) {
      case 0:
        savepoints.emplace_back(fixture.overlay.savepoint(), fixture.model);
        break;
      case 1:
        if (savepoints.empty()) break;
        fixture.overlay.rollback(savepoints.back().first);
        fixture.model = savepoints.back().second;
        savepoints.pop_back();
        break;
      case 2:
        fixture.overlay.remove(Space::kMeta, key);
        fixture.model.erase(key);
        break;
      case 3:
        CHECK(fixture.walk_forward() == fixture.model);
        CHECK(fixture.walk_backward() == fixture.model);
        break;
      default:
        fixture.overlay.put(Space::kMeta, key, std::to_string(step));
        fixture.model[key] = std::to_string(step);
    }
    std::string value;
    bool found = fixture.overlay.get(Space::kMeta, key, &value);
    REQUIRE(found == fixture.model.contains(key));
    if (found) CHECK(value == fixture.model[key]);
  }
  CHECK(fixture.walk_forward() == fixture.model);
  auto batch = fixture.engine->new_batch();
  fixture.overlay.write_to(batch.get());
  REQUIRE(fixture.engine->write(*batch, Durability::kBuffered).ok());
  fixture.overlay.clear();
  CHECK(fixture.overlay.empty());
  CHECK(fixture.walk_forward() == fixture.model);
}

TEST_CASE("a cursor turns round in the middle", "[overlay]") {
  Fixture fixture;
  fixture.seed({{"a", "1"}, {"c", "3"}, {"e", "5"}});
  fixture.overlay.put(Space::kMeta, "b", "2");
  fixture.overlay.put(Space::kMeta, "d", "4");
  fixture.overlay.remove(Space::kMeta, "c");
  auto cursor = fixture.overlay.cursor(Space::kMeta, "a", "e");
  cursor->seek("b");
  REQUIRE(cursor->valid());
  CHECK(cursor->key() == "b");
  cursor->next();
  CHECK(cursor->key() == "d");
  cursor->prev();
  CHECK(cursor->key() == "b");
  cursor->prev();
  CHECK(cursor->key() == "a");
  cursor->prev();
  CHECK_FALSE(cursor->valid());
  cursor->seek("e");
  CHECK_FALSE(cursor->valid());  // the upper bound is exclusive
  cursor->seek_for_prev("z");
  REQUIRE(cursor->valid());
  CHECK(cursor->key() == "d");
}

TEST_CASE("the overlay keeps spaces apart", "[overlay]") {
  Fixture fixture;
  fixture.overlay.put(Space::kData, "x", "data");
  fixture.overlay.put(Space::kExpiry, "x", "expiry");
  CHECK(fixture.walk_forward().empty());
  std::string value;
  CHECK_FALSE(fixture.overlay.get(Space::kMeta, "x", &value));
  REQUIRE(fixture.overlay.get(Space::kExpiry, "x", &value));
  CHECK(value == "expiry");
}

// A walk that went on with the next change would have left out what the engine could not read.
TEST_CASE("elements are handed out in order and forgotten, and nothing else is", "[overlay]") {
  TestEngine engine("memory");
  REQUIRE(engine.put(Space::kData, "b", "old").ok());
  Overlay overlay(*engine, nullptr, Tier::kDisk);
  overlay.put(Space::kMeta, "key", "record");
  overlay.remove(Space::kExpiry, "gone");
  overlay.put(Space::kOrder, "a", "leaf");
  overlay.put(Space::kData, "c", "first");
  overlay.put(Space::kData, "c", "last");
  overlay.remove(Space::kData, "b");
  CHECK(overlay.changes(Space::kOrder, "a", "b"));
  CHECK_FALSE(overlay.changes(Space::kOrder, "b", "c"));
  std::vector<std::string> taken;
  overlay.take_elements([&](Space space, std::string_view key, const std::string_view* value) {
    taken.push_back(std::string(space_name(space)) + " " + std::string(key) + " " +
                    (value != nullptr ? std::string(*value) : "<removed>"));
  });
  CHECK(taken == std::vector<std::string>{"data b <removed>", "data c last", "order a leaf"});
  CHECK(overlay.size() == 2);
  std::string value;
  CHECK(overlay.get(Space::kMeta, "key", &value));
  CHECK(value == "record");
  // Whoever took them has not written them.
  CHECK(overlay.get(Space::kData, "b", &value));
  CHECK(value == "old");
  CHECK_FALSE(overlay.get(Space::kData, "c", &value));
}

TEST_CASE("a walk ends where the engine's memory ends", "[overlay]") {
  MemoryEngine engine{EngineOptions{}};
  const auto batch = engine.new_batch();
  for (const char* key : {"a", "b", "c", "d", "e"}) batch->put(Space::kMeta, key, "old");
  REQUIRE(engine.write(*batch, Durability::kBuffered).ok());
  engine.set_cold([](Space, std::string_view key) { return key == "c"; });
  Overlay overlay(engine, nullptr, Tier::kCacheOnly);
  overlay.put(Space::kMeta, "a", "new");
  overlay.put(Space::kMeta, "e", "new");

  const bool backward = GENERATE(false, true);
  const auto cursor = overlay.cursor(Space::kMeta, {}, {});
  std::string seen;
  if (backward) {
    for (cursor->seek_for_prev("z"); cursor->valid(); cursor->prev()) seen += cursor->key();
  } else {
    for (cursor->seek({}); cursor->valid(); cursor->next()) seen += cursor->key();
  }
  CHECK(seen == (backward ? "ed" : "ab"));
  CHECK(cursor->outcome() == Lookup::kMiss);
}

namespace {

std::string committed(Overlay& overlay, Engine& engine) {
  const auto batch = engine.new_batch();
  overlay.write_to(batch.get());
  overlay.begin_cache_changes();
  REQUIRE(engine.write(*batch, Durability::kBuffered).ok());
  overlay.end_cache_changes(true);
  overlay.clear();
  std::string value = "absent";
  overlay.get(Space::kData, "key", &value);
  return value;
}

}  // namespace

TEST_CASE("a new record passes the cache by, unless it takes an old one's place", "[overlay]") {
  const auto engine = std::move(open_memory({}).first);
  RecordCache cache(1 << 20);
  Overlay overlay(*engine, nullptr, Tier::kDisk, &cache);
  const auto is_cached = [&] {
    std::string value;
    return cache.get(HashedKey(Space::kData, "key"), &value);
  };
  overlay.put_new(Space::kData, "key", "first");
  const auto batch = engine->new_batch();
  overlay.write_to(batch.get());
  overlay.begin_cache_changes();
  REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  overlay.end_cache_changes(true);
  overlay.clear();
  CHECK_FALSE(is_cached());
  std::string value;
  REQUIRE(overlay.get(Space::kData, "key", &value));
  CHECK(is_cached());  // by the read

  SECTION("removed and put in one group") {
    overlay.remove(Space::kData, "key");
    overlay.put_new(Space::kData, "key", "second");
    CHECK(committed(overlay, *engine) == "second");
  }
  SECTION("so, and taken back to the removal") {
    overlay.remove(Space::kData, "key");
    const auto savepoint = overlay.savepoint();
    overlay.put_new(Space::kData, "key", "second");
    overlay.rollback(savepoint);
    CHECK(committed(overlay, *engine) == "absent");
  }
  SECTION("changed after it was put in one group") {
    overlay.remove(Space::kData, "key");
    CHECK(committed(overlay, *engine) == "absent");
    overlay.put_new(Space::kData, "key", "second");
    overlay.put(Space::kData, "key", "third");
    CHECK(committed(overlay, *engine) == "third");
    overlay.put(Space::kData, "key", "fourth");
    CHECK(committed(overlay, *engine) == "fourth");
  }
}

TEST_CASE("what is read ahead is in the cache, some kilobytes of it", "[overlay]") {
  const auto engine = std::move(open_memory({}).first);
  RecordCache cache(1 << 20);
  Overlay overlay(*engine, nullptr, Tier::kDisk, &cache);
  for (int i = 100; i < 200; ++i) {
    overlay.put_new(Space::kData, std::to_string(i), std::string(500, 'x'));
  }
  const auto batch = engine->new_batch();
  overlay.write_to(batch.get());
  REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  overlay.clear();
  overlay.remove(Space::kData, "111");  // of this group: the cache is of what is committed
  int heard = 0;
  overlay.read_ahead(Space::kData, "110", "115", [&](std::string_view) { ++heard; });
  CHECK(heard == 5);
  std::string value;
  CHECK_FALSE(overlay.get(Space::kData, "111", &value));
  const uint64_t hits = cache.hits();
  CHECK(overlay.get(Space::kData, "112", &value));
  CHECK(cache.hits() == hits + 1);
  CHECK(overlay.get(Space::kData, "115", &value));
  CHECK(cache.hits() == hits + 1);
  heard = 0;
  overlay.read_ahead(Space::kData, "100", "200", [&](std::string_view) { ++heard; });
  CHECK(heard < 40);
}

TEST_CASE("what is looked up ahead is in the cache, and known to be absent until the group ends",
          "[overlay]") {
  const auto engine = std::move(open_memory({}).first);
  RecordCache cache(1 << 20);
  Overlay overlay(*engine, nullptr, Tier::kDisk, &cache);
  const auto commit = [&](std::string_view key) {
    const auto batch = engine->new_batch();
    batch->put(Space::kMeta, key, "there");
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  };
  const auto has = [&](std::string_view key) {
    std::string value;
    return overlay.get(Space::kMeta, key, &value);
  };
  commit("old");
  overlay.put(Space::kMeta, "changed", "new");
  std::string name = "absent";
  overlay.look_ahead(std::vector{HashedKey(Space::kMeta, "old"), HashedKey(Space::kMeta, name),
                                 HashedKey(Space::kData, "old"),
                                 HashedKey(Space::kMeta, "changed")});
  name = "else..";  // it keeps its own bytes
  CHECK(has("old"));
  CHECK(cache.hits() == 1);
  CHECK(has("changed"));
  std::string value;
  CHECK_FALSE(overlay.get(Space::kData, "old", &value));
  // Nobody but the overlay's owner changes the engine, and ends the group with that.
  commit("absent");
  CHECK_FALSE(has("absent"));
  const Overlay::Savepoint before = overlay.savepoint();
  overlay.put(Space::kMeta, "absent", "new");
  CHECK(has("absent"));
  overlay.rollback(before);
  CHECK_FALSE(has("absent"));
  overlay.clear();
  CHECK(has("absent"));
}

TEST_CASE("a group is written in the order of its keys, whatever their length", "[overlay]") {
  std::mt19937 random(1);
  Fixture fixture;
  std::set<RecordingBatch::Told> expected;
  for (int i = 0; i < 3000; ++i) {
    // Many share eight bytes, or sixteen, or end within them, in a zero or not.
    std::string key(random() % 20, random() % 4 == 0 ? '\0' : 'k');
    for (uint32_t more = random() % 3; more > 0; --more) {
      key.push_back(static_cast<char>(random() % 3 == 0 ? 0 : random()));
    }
    const Space space = random() % 2 == 0 ? Space::kData : Space::kMeta;
    fixture.overlay.put(space, key, "value");
    expected.insert({space, key, "value"});
  }
  RecordingBatch batch;
  fixture.overlay.write_to(&batch);
  CHECK(batch.told == std::vector<RecordingBatch::Told>(expected.begin(), expected.end()));
}

TEST_CASE("what came and went within a group is not written", "[overlay]") {
  Fixture fixture;
  fixture.overlay.put_new(Space::kData, "came and went", "1");
  fixture.overlay.put_new(Space::kData, "new", "1");
  fixture.overlay.put(Space::kData, "perhaps older", "1");
  fixture.overlay.remove(Space::kData, "came and went");
  const Overlay::Savepoint before = fixture.overlay.savepoint();
  fixture.overlay.remove(Space::kData, "new");
  fixture.overlay.rollback(before);
  fixture.overlay.remove(Space::kData, "perhaps older");
  RecordingBatch batch;
  fixture.overlay.write_to(&batch);
  const std::vector<RecordingBatch::Told> expected = {{Space::kData, "new", "1"},
                                                      {Space::kData, "perhaps older", ""}};
  CHECK(batch.told == expected);
}

TEST_CASE("a record is extended while it is pending, and an undo shortens it again", "[overlay]") {
  Fixture fixture;
  fixture.seed({{"k", "old"}});
  std::string pending;
  bool wanted = true;
  const auto extend = [&](std::string_view head, std::string_view tail) {
    return fixture.overlay.extend(
        Space::kMeta, "k",
        [&](std::string_view value) {
          pending = value;
          return wanted;
        },
        head, tail);
  };
  CHECK_FALSE(extend("a", "b"));
  CHECK(pending.empty());
  fixture.overlay.put(Space::kMeta, "k", "a");
  std::string expected = "a";
  std::string value;
  for (int i = 0; i < 200; ++i) {
    const Overlay::Savepoint before = fixture.overlay.savepoint();
    CHECK(extend("undone", std::to_string(i)));
    CHECK(extend("too", {}));
    fixture.overlay.rollback(before);
    wanted = i % 5 != 0;
    CHECK(extend("x", std::to_string(i)) == wanted);
    CHECK(pending == expected);
    if (wanted) expected += "x" + std::to_string(i);
    wanted = true;
    REQUIRE(fixture.overlay.get(Space::kMeta, "k", &value));
    REQUIRE(value == expected);
  }
  CHECK(extend({}, std::string(100'000, 'y')));
  CHECK(extend("z", {}));
  REQUIRE(fixture.overlay.get(Space::kMeta, "k", &value));
  CHECK(value == expected + std::string(100'000, 'y') + "z");
  fixture.overlay.remove(Space::kMeta, "k");
  CHECK_FALSE(extend("a", "b"));
}
