// The bounds of leaves that are remembered, against a plain ordered set of them.
#include "src/types/leaf_bounds.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace ingot::types {
namespace {

using Model = std::set<std::pair<storage::CollectionId, std::string>>;

// Of any length, many with the same first eight bytes.
std::string some_bound(std::mt19937_64& random) {
  const std::string bound = random() % 3 == 0 ? std::string(random() % 12, '\0') : "the same";
  return bound + std::string(random() % 3, static_cast<char>(random() % 4)) +
         std::to_string(100 + random() % 300).substr(random() % 3);
}

std::string numbered(uint64_t number) {
  std::string bound;
  storage::append_be64(&bound, number);
  return bound + "member";
}

}  // namespace

TEST_CASE("remembered leaves are those that were noted, each collection's own", "[leaf_bounds]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  LeafBounds leaves;
  Model model;
  size_t most = 0;
  CHECK_FALSE(leaves.at(1, "a"));
  leaves.forget(1, "a");
  for (int step = 0; step < 30'000; ++step) {
    const storage::CollectionId id = 1 + random() % 3;
    const std::string bound = some_bound(random);
    if (random() % 10 < (step < 20'000 ? 7u : 2u)) {
      leaves.note(id, bound);
      model.emplace(id, bound);
    } else {
      leaves.forget(id, bound);  // mostly one that is not there
      model.erase({id, bound});
      const auto behind = model.lower_bound({id, bound});
      if (behind == model.end()) continue;
      leaves.forget(behind->first, behind->second);
      model.erase(behind);
    }
    most = std::max(most, model.size());
    REQUIRE(leaves.size() == model.size());
    const std::string from = some_bound(random);
    const auto expected = model.lower_bound({id, from});
    const auto found = leaves.at(id, from);
    REQUIRE(found.has_value() == (expected != model.end() && expected->first == id));
    if (found) REQUIRE(*found == expected->second);
  }
  CHECK(most > 2000);  // many chunks, of which some have gone since
  CHECK(model.size() < most / 2);
  while (!model.empty()) {
    leaves.forget(model.begin()->first, model.begin()->second);
    model.erase(model.begin());
    REQUIRE(leaves.size() == model.size());
  }
  CHECK_FALSE(leaves.at(1, ""));
}

TEST_CASE("leaves beyond the memory for them are forgotten in turn", "[leaf_bounds]") {
  LeafBounds leaves;
  constexpr uint64_t kMany = 300'000;
  for (uint64_t i = 0; i < kMany; ++i) leaves.note(9, numbered(i));
  CHECK(leaves.size() > 100'000);
  CHECK(leaves.size() * (sizeof(uint64_t) * 4 + 6) <= LeafBounds::kBytesMax);
  uint64_t known = 0;
  for (uint64_t i = 0; i < kMany; ++i) known += leaves.at(9, numbered(i)) == numbered(i);
  CHECK(known == leaves.size());
  CHECK(leaves.at(9, numbered(kMany - 1)) == numbered(kMany - 1));
  leaves.note(9, std::string(LeafBounds::kBoundBytesMax + 1, 'x'));
  CHECK_FALSE(leaves.at(9, "x"));
}

}  // namespace ingot::types
