// The bounds of leaves that are remembered, against a plain ordered set of them.
#include "src/types/leaf_bounds.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

bool knows(const LeafBounds& leaves, storage::CollectionId id, const std::string& bound) {
  const auto found = leaves.at(id, bound);
  return found && found->bound == bound;
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
    if (found) REQUIRE(found->bound == expected->second);
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
  const auto bytes = [&] { return leaves.size() * (sizeof(uint64_t) * 4 + 6); };
  for (uint64_t i = 0; i < kMany; ++i) leaves.note(9, numbered(i));
  CHECK(leaves.size() > 80'000);
  CHECK(bytes() <= LeafBounds::kBytesMin);
  uint64_t known = 0;
  for (uint64_t i = 0; i < kMany; ++i) known += knows(leaves, 9, numbered(i));
  CHECK(known == leaves.size());
  CHECK(knows(leaves, 9, numbered(kMany - 1)));
  leaves.note(9, std::string(LeafBounds::kBoundBytesMax + 1, 'x'));
  CHECK_FALSE(leaves.at(9, "x"));
}

// Of an order whose leaves are split, erased and taken back, at random.
TEST_CASE("what is joined has no leaf before it that is not known", "[leaf_bounds]") {
  const uint64_t seed = GENERATE(range(1, 9));
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  LeafBounds leaves;
  constexpr storage::CollectionId kId = 3;
  constexpr uint64_t kNumbers = 400;
  const std::string last = numbered(kNumbers);
  std::set<std::string> there{last};
  struct Undo {
    std::string bound;
    bool was_split;
  };
  std::vector<Undo> undo;
  uint64_t joined = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::string some = numbered(random() % kNumbers);
    const auto behind = there.lower_bound(some);
    switch (random() % 8) {
      case 0:
      case 1:  // a leaf is split
        if (!there.insert(some).second) break;
        leaves.note_split(kId, some, *behind);
        undo.push_back({.bound = some, .was_split = true});
        break;
      case 2:  // one goes
        if (*behind == last) break;
        undo.push_back({.bound = *behind, .was_split = false});
        leaves.forget(kId, *behind);
        there.erase(behind);
        break;
      case 3:  // the unit is undone, or over
        if (random() % 2 == 0) {
          for (; !undo.empty(); undo.pop_back()) {
            if (undo.back().was_split) {
              there.erase(undo.back().bound);
            } else {
              there.insert(undo.back().bound);
              leaves.part(kId, undo.back().bound);
            }
          }
        }
        undo.clear();
        break;
      case 4:  // one is sought
        leaves.note(kId, *behind);
        break;
      case 5:  // and its neighbour
        leaves.note_neighbours(kId, behind == there.begin() ? "" : *std::prev(behind), *behind);
        break;
      case 6:  // somebody else makes one
        if (random() % 4 != 0 || !there.insert(some).second) break;
        leaves.part(kId, some);
        undo.push_back({.bound = some, .was_split = true});
        break;
      default:  // others come between, or one is not found
        leaves.note(kId + random() % 2 * 2 - 1, some);
        if (const auto known = leaves.at(kId, some); known && !there.contains(known->bound)) {
          leaves.forget(kId, known->bound);
        }
    }
    const std::string from = numbered(random() % kNumbers);
    const auto known = leaves.at(kId, from);
    if (!known || !known->joined) continue;
    ++joined;
    INFO("step " << step);
    REQUIRE(*there.lower_bound(from) >= known->bound);
  }
  CHECK(joined > 2000);
}

// Bounds so long that few find room: what is forgotten may stand right before a leaf that is split.
TEST_CASE("what was forgotten joins nothing", "[leaf_bounds]") {
  constexpr storage::CollectionId kId = 1;
  const auto long_name = [](uint64_t number) { return numbered(number) + std::string(3900, 'm'); };
  for (uint64_t gap = 120; gap < 140; ++gap) {
    LeafBounds leaves;
    std::set<std::string> there{long_name(1'000'000)};
    const auto split = [&](uint64_t number) {
      const std::string left = long_name(number);
      leaves.note_split(kId, left, *there.lower_bound(left));
      there.insert(left);
    };
    for (uint64_t i = 0; i < 400; ++i) split(i * 2000);
    for (uint64_t i = 0; i < 1000; ++i) {
      split(gap * 2000 + 1999 - i);
      if (i % 20 != 0) continue;
      auto at = there.lower_bound(long_name(gap * 2000 + 1999 - i));
      for (int before = 0; before < 150 && at != there.begin(); ++before) {
        const auto known = leaves.at(kId, *--at);
        INFO("gap " << gap << ", split " << i);
        REQUIRE((!known || !known->joined || known->bound == *at));
      }
    }
  }
}

}  // namespace ingot::types
