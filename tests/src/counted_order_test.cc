// Ranks in long ordered sequences, checked against a plain ordered set; and packed byte strings.
#include "src/types/counted_order.h"

#include <catch2/catch.hpp>
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
    overlay_.put(storage::Space::kOrder, key(item), "x");
    order().added(item);
  }
  void remove(std::string item) {
    if (model_.erase(item) == 0) return;
    overlay_.remove(storage::Space::kOrder, key(item));
    order().removed(item);
  }
  void check(std::mt19937_64& random) {
    REQUIRE_FALSE(overlay_.failed());
    for (int i = 0; i < 20 && !model_.empty(); ++i) {
      const size_t rank = random() % model_.size();
      const std::string& item = *std::next(model_.begin(), static_cast<long>(rank));
      REQUIRE(order().rank(item) == rank);
      REQUIRE(order().rank(item + "!") == rank + 1);
      auto at = order().at(rank);
      REQUIRE(at->valid());
      REQUIRE(at->key() == key(item));
    }
    REQUIRE_FALSE(order().at(model_.size())->valid());
    REQUIRE(order().rank("\xff") == model_.size());
    REQUIRE(order().rank("") == 0);
  }
  // As between two groups of the writer.
  void commit() {
    auto batch = engine_->new_batch();
    overlay_.write_to(batch.get());
    REQUIRE(engine_->write(*batch, storage::Durability::kBuffered).ok());
    overlay_.clear();
  }
  const std::set<std::string>& model() const { return model_; }

 private:
  CountedOrderWriter order() { return {overlay_, kId, {storage::Space::kOrder, prefix()}}; }
  static std::string prefix() { return storage::collection_begin(kId) + '\0'; }
  static std::string key(const std::string& item) { return prefix() + item; }

  std::unique_ptr<storage::Engine> engine_ = storage::open_memory({}).first;
  storage::Overlay overlay_{*engine_, nullptr, storage::Tier::kDisk};
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
    }
    sequence.check(random);
    sequence.commit();
  }
  while (!sequence.model().empty()) {
    sequence.remove(*sequence.model().begin());
    if (sequence.model().size() % 500 == 0) sequence.check(random);
  }
  sequence.add("again");
  sequence.check(random);
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
