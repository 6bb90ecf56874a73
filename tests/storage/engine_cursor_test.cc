// Cursors on every engine: order, both directions, bounds.
#include <catch2/catch.hpp>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kData = Space::kData;

std::string here(const Cursor& cursor) {
  return cursor.valid() ? std::string(cursor.key()) : "<end>";
}

// b d f h, over what is left of older records, in memory or in files.
void fill(TestEngine* engine, bool flushed) {
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) {
    REQUIRE(engine->put(kData, key, "old").ok());
  }
  if (flushed) REQUIRE((*engine)->flush().ok());
  for (const char* key : {"a", "c", "e", "g", "i"}) REQUIRE(engine->remove(kData, key).ok());
  for (const char* key : {"b", "d", "f", "h"}) {
    REQUIRE(engine->put(kData, key, std::string("v") + key).ok());
  }
  // Neighbours that a cursor must not wander into.
  REQUIRE(engine->put(Space::kMeta, "z", "not mine").ok());
  REQUIRE(engine->put(Space::kOrder, "", "not mine").ok());
}

}  // namespace

TEST_CASE("a cursor walks both ways") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  const bool flushed = GENERATE(false, true);
  INFO(engine.name() << (flushed ? ", flushed" : ""));
  fill(&engine, flushed);

  const auto cursor = engine->new_cursor(kData, {});
  CHECK_FALSE(cursor->valid());
  CHECK(cursor->outcome() == Lookup::kFound);

  cursor->seek("");
  CHECK(here(*cursor) == "b");
  CHECK(cursor->value() == "vb");
  cursor->seek("d");
  CHECK(here(*cursor) == "d");
  cursor->seek("e");
  CHECK(here(*cursor) == "f");
  cursor->next();
  CHECK(here(*cursor) == "h");
  cursor->prev();
  CHECK(here(*cursor) == "f");
  cursor->prev();
  CHECK(here(*cursor) == "d");
  cursor->next();
  CHECK(here(*cursor) == "f");
  cursor->seek("h");
  cursor->next();
  CHECK(here(*cursor) == "<end>");
  CHECK(cursor->outcome() == Lookup::kFound);
  CHECK(cursor->status().ok());
  cursor->seek("i");
  CHECK(here(*cursor) == "<end>");

  cursor->seek_for_prev("z");
  CHECK(here(*cursor) == "h");
  cursor->seek_for_prev("f");
  CHECK(here(*cursor) == "f");
  cursor->seek_for_prev("e");
  CHECK(here(*cursor) == "d");
  cursor->seek_for_prev("b");
  CHECK(here(*cursor) == "b");
  cursor->prev();
  CHECK(here(*cursor) == "<end>");
  cursor->seek_for_prev("a");
  CHECK(here(*cursor) == "<end>");
  CHECK(cursor->outcome() == Lookup::kFound);
}

TEST_CASE("a cursor keeps to its bounds") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  const bool flushed = GENERATE(false, true);
  INFO(engine.name() << (flushed ? ", flushed" : ""));
  fill(&engine, flushed);

  CursorOptions options;
  options.lower = "c";
  options.upper = "h";  // exclusive
  CHECK(engine.scan(kData, options) == Records{{"d", "vd"}, {"f", "vf"}});
  CHECK(engine.scan_backwards(kData, options) == Records{{"f", "vf"}, {"d", "vd"}});

  const auto cursor = engine->new_cursor(kData, options);
  cursor->seek("a");
  CHECK(here(*cursor) == "d");
  cursor->prev();
  CHECK(here(*cursor) == "<end>");
  cursor->seek("g");
  CHECK(here(*cursor) == "<end>");
  cursor->seek("z");
  CHECK(here(*cursor) == "<end>");
  cursor->seek_for_prev("h");
  CHECK(here(*cursor) == "f");
  cursor->next();
  CHECK(here(*cursor) == "<end>");
  cursor->seek_for_prev("c");
  CHECK(here(*cursor) == "<end>");
  cursor->seek_for_prev("a");
  CHECK(here(*cursor) == "<end>");

  options = {};
  options.lower = "d";
  CHECK(engine.scan(kData, options).size() == 3);
  CHECK(engine.scan_backwards(kData, options).back().first == "d");
  options = {};
  options.upper = "d";
  CHECK(engine.scan(kData, options) == Records{{"b", "vb"}});
  CHECK(engine.scan_backwards(kData, options) == Records{{"b", "vb"}});
  options.lower = "d";
  CHECK(engine.scan(kData, options).empty());
}

TEST_CASE("a cursor in an empty space") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  REQUIRE(engine.put(Space::kMeta, "m", "v").ok());
  REQUIRE(engine.put(Space::kOrder, "o", "v").ok());
  CHECK(engine.scan(kData).empty());
  CHECK(engine.scan_backwards(kData).empty());
  CHECK(engine.scan_backwards(Space::kGarbage).empty());  // the last space: nothing follows it
}

TEST_CASE("a cursor stands in the state that was when it was made") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  fill(&engine, false);

  const auto snapshot = engine->new_snapshot();
  const auto cursor = engine->new_cursor(kData, {});
  REQUIRE(engine.put(kData, "c", "new").ok());
  REQUIRE(engine.remove(kData, "d").ok());
  REQUIRE(engine.put(kData, "f", "changed").ok());
  const Records old = {{"b", "vb"}, {"d", "vd"}, {"f", "vf"}, {"h", "vh"}};
  Records seen;
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    seen.emplace_back(cursor->key(), cursor->value());
  }
  CHECK(seen == old);
  CursorOptions options;
  options.snapshot = snapshot.get();
  CHECK(engine.scan(kData, options) == old);
  CHECK(engine.scan(kData) == Records{{"b", "vb"}, {"c", "new"}, {"f", "changed"}, {"h", "vh"}});
}

TEST_CASE("a long walk over files and memory") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  constexpr int kCount = 20'000;
  const auto batch = engine->new_batch();
  for (int round = 0; round < 4; ++round) {
    batch->clear();
    for (int i = round; i < kCount; i += 4) {
      batch->put(kData, element_key(static_cast<uint64_t>(i), "e"), std::to_string(i));
    }
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    if (round < 3) REQUIRE(engine->flush().ok());
  }
  engine.reopen();
  int expected = 0;
  CursorOptions options;
  options.fill_cache = false;
  for (const auto& [key, value] : engine.scan(kData, options)) {
    REQUIRE(key == element_key(static_cast<uint64_t>(expected), "e"));
    REQUIRE(value == std::to_string(expected++));
  }
  CHECK(expected == kCount);
  for (const auto& [key, value] : engine.scan_backwards(kData, options)) {
    REQUIRE(value == std::to_string(--expected));
  }
  CHECK(expected == 0);
}

}  // namespace ingot::storage
