// Ranks in long ordered sequences, checked against a plain ordered set; and packed byte strings.
#include "src/types/counted_order.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <set>

#include "src/types/packed.h"
#include "storage/memory/memory_engine.h"

namespace ingot::types {
namespace {

constexpr storage::CollectionId kId = 7;

class Sequence {
 public:
  void add(const std::string& item) {
    if (!model_.insert(item).second) return;
    order().add(item, marked(item));
  }
  void remove(std::string item) {
    if (model_.erase(item) == 0) return;
    order().remove(item);
  }
  void move(const std::string& from, const std::string& to) {
    if (!model_.contains(from) || model_.contains(to)) return;
    model_.erase(from);
    model_.insert(to);
    order().move(from, to, marked(to));
  }
  void check(std::mt19937_64& random) {
    REQUIRE_FALSE(overlay_.failed());
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
    REQUIRE_FALSE(order().at(model_.size()));
    REQUIRE(order().rank("\xff") == model_.size());
    REQUIRE(order().rank("") == 0);
  }
  // What a streamed reply would read of some ranks.
  void check_leaves(std::mt19937_64& random) {
    if (model_.empty()) return;
    const uint64_t first = random() % model_.size();
    const uint64_t end = first + 1 + random() % std::min<size_t>(300, model_.size() - first);
    const auto leaves = order().leaves(first, end);
    REQUIRE(leaves);
    std::vector<std::string> found;
    const auto at = overlay_.cursor(storage::Space::kOrder, leaves->lower, leaves->upper);
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
          overlay_.put(space, storage::collection_begin(kId).append(element), record);
        });
    for (const std::string& item : model_) builder.add(item, marked(item));
    builder.finish();
  }
  size_t records() {
    size_t count = 0;
    const auto at = overlay_.cursor(storage::Space::kOrder, {}, {});
    for (at->seek({}); at->valid(); at->next()) ++count;
    return count;
  }
  // Changes that are taken back, as a unit of the writer that misses a block.
  void undone(const std::function<void()>& changes) {
    const auto model = model_;
    const auto overlay_before = overlay_.savepoint();
    const auto index_before = index_.savepoint();
    changes();
    overlay_.rollback(overlay_before);
    index_.rollback(index_before);
    model_ = model;
  }
  // As between two groups of the writer.
  void commit() {
    if (model_.size() % 3 == 0) index_ = {};  // it may be forgotten
    index_.end_group();
    auto batch = engine_->new_batch();
    overlay_.write_to(batch.get());
    REQUIRE(engine_->write(*batch, storage::Durability::kBuffered).ok());
    overlay_.clear();
  }
  const std::set<std::string>& model() const { return model_; }

 private:
  CountedOrderWriter order() { return {overlay_, index_, kId, {}}; }
  bool marked(std::string_view item) const { return !item.empty() && item.back() % 3 == 0; }

  std::unique_ptr<storage::Engine> engine_ = storage::open_memory({}).first;
  storage::Overlay overlay_{*engine_, nullptr, storage::Tier::kDisk};
  types::OrderIndex index_;
  std::set<std::string> model_;
};

std::string numbered(uint64_t number) {
  std::string item;
  storage::append_be32(&item, static_cast<uint32_t>(number));
  return item;
}

}  // namespace

TEST_CASE("ranks stay right while elements come and go", "[counted_order]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Sequence sequence;
  const uint64_t range = seed == 1 ? 500 : 60000;
  for (int round = 0; round < 12; ++round) {
    // Growing rounds, then shrinking ones, down to nothing.
    for (int i = 0; i < 4000; ++i) {
      const bool grow = random() % 10 < (round < 6 ? 8u : 1u);
      const std::string item = numbered(random() % range);
      grow ? sequence.add(item) : sequence.remove(item);
      const uint64_t from = random() % range;
      const uint64_t to = random() % 2 == 0 ? from + random() % 50 : random() % range;
      sequence.move(numbered(from), numbered(to));
      if (i % 400 != 0) continue;
      sequence.undone([&] {
        for (int j = 0; j < 300; ++j) {
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
  REQUIRE(sequence.records() == 3);  // the last of each level
  sequence.add("again");
  sequence.check(random);
}

TEST_CASE("a long sequence is built at once, and changed and emptied afterwards",
          "[counted_order]") {
  std::mt19937_64 random(5);
  std::set<std::string> items;
  for (uint64_t i = 0; i < 250000; ++i) items.insert(numbered(4 * i));
  Sequence sequence;
  sequence.build(items);
  sequence.commit();
  sequence.check(random);
  // Many at few places, so that every level is split.
  for (uint64_t i = 0; i < 90000; ++i) sequence.add(numbered(random() % 400000));
  sequence.check(random);
  sequence.commit();
  // A stretch goes.
  for (uint64_t i = 100000; i < 700000; ++i) sequence.remove(numbered(i));
  sequence.check(random);
  sequence.commit();
  while (!sequence.model().empty()) sequence.remove(*sequence.model().rbegin());
  REQUIRE(sequence.records() == 3);
}

TEST_CASE("a queue keeps its ranks: filled at one end, emptied at the other", "[counted_order]") {
  std::mt19937_64 random(1);
  Sequence sequence;
  for (uint64_t i = 0; i < 40000; ++i) {
    sequence.add(numbered(i));
    if (i >= 15000) sequence.remove(numbered(i - 15000));
    if (i % 5000 == 0) {
      sequence.check(random);
      sequence.commit();
    }
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
