// Ranks in long ordered sequences on every engine, checked against a plain ordered set; and packed
// byte strings.
#include "src/types/counted_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <set>

#include "src/types/order_index.h"
#include "src/types/packed.h"
#include "tests/src/one_sequence.h"

namespace ingot::types {
namespace {

TEST_CASE("an order index forgets what changed longest ago, and no more than it must",
          "[counted_order]") {
  constexpr storage::CollectionId kOrders = 100;
  OrderIndex index;
  const auto load = [&](storage::CollectionId id) {
    OrderIndex::Nodes nodes;
    for (int i = 0; i < 1000; ++i)
      nodes.push_back({.bound = std::to_string(10'000 + i), .count = 1});
    index.load(id, 1, std::move(nodes));
  };
  for (storage::CollectionId id = 1; id <= kOrders; ++id) {
    load(id);
    if (id > 1) index.set(1, 1, {.bound = "10000", .count = id});  // the first stays in use
    index.end_group();
  }
  CHECK(index.nodes(1, 1) != nullptr);
  CHECK(index.nodes(2, 1) == nullptr);
  size_t kept = 0;
  for (storage::CollectionId id = 1; id <= kOrders; ++id) kept += index.nodes(id, 1) != nullptr;
  CHECK(kept == 80);
  CHECK(index.nodes(kOrders, 1) != nullptr);
  // What is known of ends is of the latest, however many there were.
  for (storage::CollectionId id = 1; id <= 3000; ++id) {
    index.note_last_filled(id, "bound");
    REQUIRE(index.last_filled(id) == "bound");
  }
  // What is undone is forgotten, and counts no more.
  load(kOrders + 1);
  index.rollback(0);
  CHECK(index.nodes(kOrders + 1, 1) == nullptr);
  index.end_group();
  CHECK(index.nodes(1, 1)->front().count == kOrders);
}

}  // namespace

TEST_CASE("ranks stay right while elements come and go", "[counted_order]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Sequence sequence(each_engine());
  const size_t changes = sequence.steps(4000);
  const uint64_t range = seed == 1 ? 500 : 15 * changes;
  for (int round = 0; round < 12; ++round) {
    // Growing rounds, then shrinking ones, down to nothing.
    for (size_t i = 0; i < changes; ++i) {
      const bool grow = random() % 10 < (round < 6 ? 8u : 1u);
      const std::string item = numbered(random() % range);
      grow ? sequence.add(item) : sequence.remove(item);
      const uint64_t from = random() % range;
      const uint64_t to = random() % 2 == 0 ? from + random() % 50 : random() % range;
      sequence.move(numbered(from), numbered(to));
      if (i % (changes / 10) != 0) continue;
      sequence.undone([&] {
        for (size_t j = 0; j < changes / 13; ++j) {
          sequence.remove(numbered(random() % range));
          sequence.add(numbered(random() % range));
          sequence.move(numbered(random() % range), numbered(random() % range));
        }
      });
    }
    sequence.check(random);
    sequence.commit();
  }
  while (!sequence.model().empty()) {
    sequence.remove(*sequence.model().begin());
    if (sequence.model().size() % 500 == 0) sequence.check(random);
  }
  CHECK(sequence.found() > sequence.walked());
  REQUIRE(sequence.records() == 3);   // the last of each level
  CHECK(sequence.ends_told() >= 12);  // as often as all of it was checked, at least
  sequence.add("again");
  sequence.check(random);
}

TEST_CASE("a long sequence is built at once, and changed and emptied afterwards",
          "[counted_order]") {
  std::mt19937_64 random(5);
  Sequence sequence(each_engine());
  const uint64_t deep = 250'000;  // so many that every level has several records
  const uint64_t length = sequence.on_disk() ? sequence.steps(deep) : deep;
  std::set<std::string> items;
  for (uint64_t i = 0; i < length; ++i) items.insert(numbered(4 * i));
  sequence.build(items);
  sequence.commit();
  sequence.check(random);
  // Many at few places, so that every level is split.
  for (uint64_t i = 0; i < length * 9 / 25; ++i) {
    sequence.add(numbered(random() % (length * 8 / 5)));
  }
  sequence.check(random);
  sequence.commit();
  // A stretch goes.
  for (uint64_t i = length * 2 / 5; i < length * 14 / 5; ++i) sequence.remove(numbered(i));
  sequence.check(random);
  sequence.commit();
  while (!sequence.model().empty()) sequence.remove(*sequence.model().rbegin());
  REQUIRE(sequence.records() == 3);
}

TEST_CASE("the keys of leaves are short however long the items are", "[counted_order]") {
  std::mt19937_64 random(3);
  Sequence sequence(each_engine());
  const auto item = [](uint64_t number) { return numbered(number) + std::string(700, 'x'); };
  const size_t count = sequence.steps(2000);
  std::set<std::string> items;
  for (uint64_t i = 0; i < count; ++i) items.insert(item(3 * i));
  sequence.build(items);
  sequence.commit();
  sequence.check(random);
  for (uint64_t i = 0; i < count; ++i) sequence.add(item(random() % (3 * count)));
  for (uint64_t i = 0; i < count; ++i) {
    sequence.move(item(random() % (3 * count)), item(random() % (3 * count)));
  }
  sequence.check(random);
  sequence.commit();
  CHECK(sequence.longest_key() < 40);
  while (!sequence.model().empty()) sequence.remove(*sequence.model().begin());
  REQUIRE(sequence.records() == 3);
}

TEST_CASE("ranks stay right where items begin as others do", "[counted_order]") {
  std::mt19937_64 random(GENERATE(1, 2, 3));
  Sequence sequence(each_engine());
  const auto item = [&] {
    std::string made = "k";
    for (size_t left = random() % 60; left > 0; --left) made += "\"a\xff"[random() % 9 / 4];
    return made;
  };
  for (size_t i = 0; i < sequence.steps(6000); ++i) {
    sequence.add(item());
    if (const auto& all = sequence.model(); random() % 3 == 0 && !all.empty()) {
      const auto at = all.lower_bound(item());
      const std::string other = at == all.end() ? *all.begin() : *at;
      random() % 2 == 0 ? sequence.remove(other) : sequence.move(other, item());
    }
    if (i % 200 == 0) sequence.check(random);
    if (i % 500 == 0) sequence.commit();
  }
  sequence.check(random);
}

TEST_CASE("the count levels that were read stay when a unit is undone, unless it made them",
          "[counted_order]") {
  std::mt19937_64 random(2);
  Sequence sequence(each_engine());
  std::set<std::string> items;
  for (uint64_t i = 0; i < 5000; ++i) items.insert(numbered(4 * i));
  sequence.undone([&] {
    sequence.build(items);
    sequence.add(numbered(1));
  });
  CHECK_FALSE(sequence.levels_loaded());
  items.erase(items.begin(), std::next(items.begin(), 2000));
  sequence.build(items);
  sequence.commit();
  sequence.forget_levels();
  sequence.undone([&] {
    sequence.add(numbered(1));
    sequence.remove(*items.rbegin());
  });
  CHECK(sequence.levels_loaded());
  sequence.check(random);
  for (uint64_t i = 0; i < 3000; ++i) sequence.add(numbered(random() % 20'000));
  sequence.check(random);
}

TEST_CASE("stretches are removed leaf by leaf", "[counted_order]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Sequence sequence(each_engine());
  const uint64_t length = sequence.steps(20'000);
  std::set<std::string> items;
  for (uint64_t i = 0; i < length; ++i) items.insert(numbered(4 * i));
  sequence.build(items);
  for (int round = 0; round < 8; ++round) {
    const uint64_t width = round % 2 == 0 ? 40 : length / 2;
    for (int i = 0; i < 10; ++i) {
      const uint64_t first = random() % (4 * length);
      sequence.remove_between(numbered(first), numbered(first + random() % width));
    }
    for (uint64_t i = 0; i < length / 20; ++i) sequence.add(numbered(random() % (4 * length)));
    sequence.check(random);
    sequence.commit();
  }
  sequence.remove_between(numbered(0), numbered(4 * length));
  REQUIRE(sequence.model().empty());
  REQUIRE(sequence.records() == 3);
  sequence.add("again");
  sequence.check(random);
}

TEST_CASE("a queue keeps its ranks: filled at one end, emptied at the other", "[counted_order]") {
  std::mt19937_64 random(1);
  Sequence sequence(each_engine());
  const uint64_t all = sequence.steps(40'000);
  const uint64_t held = all * 3 / 8;
  for (uint64_t i = 0; i < all; ++i) {
    sequence.add(numbered(i));
    if (i >= held) sequence.remove(numbered(i - held));
    if (i % (all / 8) == 0) {
      sequence.check(random);
      sequence.commit();
    }
  }
  sequence.check(random);
}

TEST_CASE("the last items are found while they go and others come behind them", "[counted_order]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Sequence sequence(each_engine());
  const uint64_t length = sequence.steps(16'000) / (sequence.on_disk() ? 1 : 8);
  std::set<std::string> items;
  for (uint64_t i = 0; i < length; ++i) items.insert(numbered(4 * i));
  sequence.build(items);
  const auto pop = [&] {
    if (!sequence.model().empty()) sequence.remove(*sequence.model().rbegin());
  };
  for (uint64_t i = 0; i < 2 * length; ++i) {
    const uint64_t chance = random() % 100;
    if (chance < 65) {
      pop();
    } else if (chance < 90 && seed > 1) {
      sequence.add(numbered(random() % (seed == 2 ? 4 * length : 4 * length - i)));
    } else if (chance == 98) {
      for (uint64_t j = 0; j < 30; ++j) sequence.add(numbered(4 * length + random() % 1000));
    } else if (chance == 99) {
      sequence.undone([&] {
        for (int j = 0; j < 40; ++j) {
          random() % 3 == 0 ? sequence.add(numbered(random() % (4 * length))) : pop();
          sequence.check_last();
        }
      });
      sequence.commit();
    }
    if (chance % 4 == 0) sequence.check_last();
  }
  sequence.check(random);
}

TEST_CASE("packed strings are read back, and broken ones noticed", "[packed]") {
  std::string packed;
  const std::vector<std::string> items = {"", "a", std::string(127, 'b'), std::string(128, 'c'),
                                          std::string(20000, 'd')};
  for (const std::string& item : items) {
    const size_t before = packed.size();
    append_packed(&packed, item);
    CHECK(packed.size() - before == packed_bytes(item));
  }
  PackedReader reader(packed);
  std::string_view item;
  for (const std::string& expected : items) {
    REQUIRE(reader.next(&item));
    CHECK(item == expected);
  }
  CHECK_FALSE(reader.next(&item));
  CHECK_FALSE(reader.broken());
  PackedReader cut(std::string_view(packed).substr(0, packed.size() - 1));
  while (cut.next(&item)) {
  }
  CHECK(cut.broken());
}

}  // namespace ingot::types
