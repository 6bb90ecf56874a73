// What is known of many orders at once: found, followed, and forgotten when there is no room.
#include "storage/order_counts.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

namespace ingot::storage {
namespace {

constexpr uint32_t kRevision = 1;

std::string bound_of(uint64_t number) {
  return "\1bound:" + std::to_string(100'000 + number);
}

// Leaves of `each` items, under one record of the levels above, as a reader puts them.
void put(OrderCounts& counts, CollectionId id, uint64_t leaves, uint64_t each) {
  std::vector<OrderCounts::Node> nodes;
  for (uint64_t i = 0; i < leaves; ++i) nodes.push_back({.bound = bound_of(i), .count = each});
  const OrderCounts::Node above{.bound = bound_of(leaves - 1), .count = leaves * each};
  for (const int level : {3, 2}) counts.put(id, kRevision, level, {above});
  counts.put(id, kRevision, 1, std::move(nodes));
}

TEST_CASE("each order has its own counts, however few there is room for", "[order_counts]") {
  constexpr uint64_t kOrders = 50;
  constexpr uint64_t kLeaves = 8;
  OrderCounts counts;
  counts.set_capacity(12'000);
  std::mt19937_64 random(1);
  uint64_t found = 0;
  for (int i = 0; i < 50'000; ++i) {
    // Some are asked for all the time.
    const CollectionId id = 1 + random() % (random() % 2 == 0 ? 5 : kOrders);
    const uint64_t leaf = random() % kLeaves;
    const auto answer = counts.leaf_of(id, kRevision, bound_of(leaf));
    if (answer.leaf) {
      ++found;
      REQUIRE(answer.leaf->bound == bound_of(leaf));
      REQUIRE(answer.leaf->before == leaf * id);
      REQUIRE(answer.leaf->count == id);
    }
    if (answer.missing) put(counts, id, kLeaves, id);
    REQUIRE(counts.bytes() <= 12'000);
  }
  CHECK(found > 10'000);
}

TEST_CASE("bytes of counts are those of what is known", "[order_counts]") {
  OrderCounts counts;
  counts.set_capacity(1 << 20);
  for (int i = 0; i < 3; ++i) (void)counts.leaf_at(7, kRevision, 0);
  put(counts, 7, 100, 1);
  const uint64_t bytes = counts.bytes();
  // Longer and shorter bounds come, and go again.
  std::mt19937_64 random(1);
  std::set<std::string> present;
  const auto toggle = [&](const std::string& bound) {
    const bool comes = present.insert(bound).second;
    if (!comes) present.erase(bound);
    const OrderCounts::Change change{
        .level = 1, .bound = bound, .count = comes ? std::optional<uint64_t>(1) : std::nullopt};
    counts.follow(7, kRevision, kRevision, std::vector{change});
  };
  for (int round = 0; round < 2000; ++round) {
    const uint64_t number = random() % 99;
    toggle(bound_of(number) + std::string(number % 2 == 0 ? 1 : 200, 'x'));
    CHECK(counts.bytes() > bytes - 1);
  }
  while (!present.empty()) toggle(std::string(*present.begin()));
  CHECK(counts.bytes() == bytes);
}

}  // namespace
}  // namespace ingot::storage
