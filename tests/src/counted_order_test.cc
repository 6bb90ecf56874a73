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
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

constexpr storage::CollectionId kId = 7;

class Sequence {
 public:
  explicit Sequence(const std::string& engine) : store_(engine) { counts_.set_capacity(64 << 20); }

  bool on_disk() const { return store_.on_disk(); }
  size_t steps(size_t in_memory) const { return store_.steps(in_memory); }
  void add(const std::string& item) {
    if (!model_.insert(item).second) return;
    order().add(item, marked(item));
  }
  void remove(std::string item) {
    if (model_.erase(item) == 0) return;
    const auto behind = order().remove(item);
    const auto next = model_.upper_bound(item);
    if (behind) REQUIRE((next != model_.end() && *next == *behind));
  }
  void remove_between(const std::string& first, const std::string& last) {
    std::vector<std::string> gone;
    order().remove_between(first, last, [&](std::string_view item) { gone.emplace_back(item); });
    const auto begin = model_.lower_bound(first);
    const auto end = model_.upper_bound(last);
    REQUIRE(gone == std::vector<std::string>(begin, end));
    model_.erase(begin, end);
  }
  void move(const std::string& from, const std::string& to) {
    if (!model_.contains(from) || model_.contains(to)) return;
    model_.erase(from);
    model_.insert(to);
    order().move(from, to, marked(to));
  }
  void check(std::mt19937_64& random) {
    REQUIRE_FALSE(store_.overlay().failed());
    for (int i = 0; i < 20 && !model_.empty(); ++i) {
      const size_t rank = random() % model_.size();
      const std::string& item = *std::next(model_.begin(), static_cast<long>(rank));
      REQUIRE(order().rank(item) == rank);
      REQUIRE(order().rank(item + "!") == rank + 1);
      REQUIRE(order().at(rank) == item);
    }
    // A stretch of both directions, with the marks.
    const uint64_t from = model_.empty() ? 0 : random() % model_.size();
    auto up = std::next(model_.begin(), static_cast<long>(from));
    order().walk(from, false, [&](std::string_view item, bool its_mark) {
      REQUIRE(up != model_.end());
      REQUIRE(item == *up);
      REQUIRE(its_mark == marked(item));
      return ++up != model_.end() && random() % 500 != 0;
    });
    auto down = std::next(model_.begin(), static_cast<long>(from));
    order().walk(from, true, [&](std::string_view item, bool its_mark) {
      REQUIRE(item == *down);
      REQUIRE(its_mark == marked(item));
      return down-- != model_.begin() && random() % 500 != 0;
    });
    check_leaves(random);
    check_ends();
    REQUIRE_FALSE(order().at(model_.size()));
    REQUIRE(order().rank("\xff") == model_.size());
    REQUIRE(order().rank("") == 0);
  }
  // The lowest is not told where its leaf is empty.
  void check_ends() {
    const auto lowest = order().lowest();
    const auto highest = order().highest();
    if (model_.empty()) {
      REQUIRE_FALSE(lowest);
      REQUIRE_FALSE(highest);
      return;
    }
    if (lowest)
      REQUIRE((lowest->item == *model_.begin() && lowest->marked == marked(lowest->item)));
    ends_told_ += lowest ? 1 : 0;
    check_last();
  }
  void check_last() {
    const auto highest = order().highest();
    REQUIRE(highest.has_value() == !model_.empty());
    if (!highest) return;
    REQUIRE((highest->item == *model_.rbegin() && highest->marked == marked(highest->item)));
    auto at = model_.rbegin();
    size_t left = 20;
    order().walk_from_last([&](std::string_view item, bool its_mark) {
      REQUIRE(at != model_.rend());
      REQUIRE((item == *at++ && its_mark == marked(item)));
      return --left != 0;
    });
    REQUIRE((left == 0 || at == model_.rend()));
  }
  // What a streamed reply would read of some ranks.
  void check_leaves(std::mt19937_64& random) {
    if (model_.empty()) return;
    const uint64_t first = random() % model_.size();
    const uint64_t end = first + 1 + random() % std::min<size_t>(300, model_.size() - first);
    const auto leaves = order().leaves(first, end);
    REQUIRE(leaves);
    std::vector<std::string> found;
    const auto at = store_.overlay().cursor(storage::Space::kOrder, leaves->lower, leaves->upper);
    for (at->seek(leaves->lower); at->valid(); at->next()) {
      REQUIRE(CountedOrder::read_leaf(at->value(), [&](std::string_view item, bool) {
        if (item >= leaves->first && item <= leaves->last) found.emplace_back(item);
        return true;
      }));
    }
    const auto begin = std::next(model_.begin(), static_cast<long>(first));
    const auto behind = std::next(begin, static_cast<long>(end - first));
    REQUIRE(found == std::vector<std::string>(begin, behind));
  }
  void build(const std::set<std::string>& items) {
    model_ = items;
    types::CountedOrderBuilder builder(
        [&](storage::Space space, std::string_view element, std::string_view record) {
          store_.overlay().put(space, storage::collection_begin(kId).append(element), record);
        });
    for (const std::string& item : model_) builder.add(item, marked(item));
    builder.finish();
  }
  size_t records() { return store_.records_in(storage::Space::kOrder); }
  size_t longest_key() {
    size_t longest = 0;
    for (const auto& [key, record] : store_.records_of(storage::Space::kOrder)) {
      longest = std::max(longest, key.size());
    }
    return longest;
  }
  // Changes that are taken back, as a unit of the writer that misses a block.
  void undone(const std::function<void()>& changes) {
    const auto model = model_;
    store_.undone(changes);
    model_ = model;
  }
  // As between two groups of the writer.
  void commit() {
    if (model_.size() % 3 == 0) store_.state().orders = {};  // it may be forgotten
    std::vector<storage::OrderCounts::Change> changes;
    store_.overlay().each_change(
        [&](storage::Space, std::string_view key, const std::string_view* record) {
          if (const auto change = order_change(key, record)) changes.push_back(change->change);
        });
    counts_.follow(kId, revision_, revision_ + 1, changes);
    ++revision_;
    store_.commit();
    check_counts();
  }
  // Readers of the committed state, who keep what they have walked over and find it again.
  void check_counts() {
    std::mt19937_64 random(revision_);
    for (int i = 0; i < 200 && !model_.empty(); ++i) {
      storage::EngineReader data(store_.engine(), nullptr, storage::Tier::kDisk,
                                 storage::CacheUse::kFill,
                                 {.cache = nullptr, .images = nullptr, .counts = &counts_});
      CountedOrder committed(data, kId, {}, revision_);
      const size_t rank = random() % model_.size();
      auto at = std::next(model_.begin(), static_cast<long>(rank));
      REQUIRE(committed.rank(*at) == rank);
      REQUIRE(committed.rank(*at + "!") == rank + 1);
      size_t left = random() % 40 + 1;
      const bool reverse = random() % 2 == 0;
      committed.walk(rank, reverse, [&](std::string_view item, bool its_mark) {
        REQUIRE(item == *at);
        REQUIRE(its_mark == marked(item));
        if (at == (reverse ? model_.begin() : std::prev(model_.end()))) return false;
        reverse ? --at : ++at;
        return --left != 0;
      });
      REQUIRE(data.error().ok());
      const auto bound = std::string(1, '\0') + *at;
      found_ += counts_.leaf_of(kId, revision_, bound).leaf ? 1 : 0;
      walked_ += data.has_walked() ? 1 : 0;
    }
  }
  size_t found() const { return found_; }
  size_t walked() const { return walked_; }
  bool levels_loaded() { return store_.state().orders.nodes(kId, 2) != nullptr; }
  void forget_levels() { store_.state().orders = {}; }
  const std::set<std::string>& model() const { return model_; }
  size_t ends_told() const { return ends_told_; }

 private:
  CountedOrderWriter order() { return {store_.overlay(), store_.state().orders, kId, {}}; }
  bool marked(std::string_view item) const { return !item.empty() && item.back() % 3 == 0; }

  TypedStore store_;
  storage::OrderCounts counts_;
  uint32_t revision_ = 1;
  size_t found_ = 0, walked_ = 0;  // by check_counts()
  std::set<std::string> model_;
  size_t ends_told_ = 0;
};

std::string numbered(uint64_t number) {
  std::string item;
  storage::append_be32(&item, static_cast<uint32_t>(number));
  return item;
}

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
