// Members of sets by chance: each as likely as any other, drawn ahead or one by one, and of sets
// whose members are gone.
#include "src/types/set_value.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/commands/chance.h"
#include "src/types/collection.h"
#include "src/types/drawn_members.h"
#include "tests/src/one_set.h"

namespace ingot::types {
namespace {

using storage::Space;
using storage::Status;

TEST_CASE("random members of a set are each as likely as any other", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = each_form(), .intset_entries_max = 512});
  for (const int members : {1, 10, 40}) {  // a large set of few is looked through as a whole
    set.add_all(numbered_members(members));
    set.commit();
    const Record found = set.record();
    SetReader reader(set.overlay(), found);
    std::mt19937_64 random(1);
    std::map<std::string, int> drawn;
    std::string member;
    for (int i = 0; i < members * 100; ++i) {
      REQUIRE(reader.random(random, &member));
      ++drawn[member];
    }
    CHECK(drawn.size() == static_cast<size_t>(members));
    for (const auto& [name, times] : drawn) {
      INFO(name);
      CHECK(set.contains(name));
      CHECK(times > 50);
      CHECK(times < 160);
    }
    set.remove_key();
  }
}

TEST_CASE("members that are drawn ahead are there, and come as often as any other", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = kAlwaysLarge, .intset_entries_max = 512});
  set.use_cache();
  const int members = static_cast<int>(set.steps(2000));
  set.add_all(numbered_members(members));
  set.commit();
  std::mt19937_64 random(1);
  DrawnMembers drawn;
  const storage::CollectionId id = set.record().collection()->id;
  const auto next = [&] {
    return drawn.next(set.overlay(), id, set.record().collection()->count, false, random);
  };
  SECTION("as often") {
    std::map<std::string, int> times;
    for (int i = 0; i < members * 100; ++i) {
      const auto member = next();
      if (member) ++times[*member];
    }
    CHECK(times.size() == static_cast<size_t>(members));
    for (const auto& [name, count] : times) {
      INFO(name);
      CHECK(count > 50);
      CHECK(count < 160);
    }
  }
  SECTION("none that somebody has removed, in this group or before") {
    SetModel left = model_of(numbered_members(members));
    for (int i = 0; left.size() > 10; ++i) {
      if (i % 100 == 0) set.commit();
      const std::string gone = *std::next(left.begin(), static_cast<long>(random() % left.size()));
      REQUIRE(set.remove(gone));
      left.erase(gone);
      const auto member = next();
      if (!member) continue;
      REQUIRE(left.erase(*member) == 1);
      REQUIRE(set.remove(*member));
    }
    CHECK(set.sorted() == left);
  }
}

TEST_CASE("a small set that is emptied by chance is read once, and each order is as likely",
          "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = kAlwaysLarge, .intset_entries_max = 512});
  set.use_cache();
  std::mt19937_64 random(1);
  DrawnMembers drawn;
  const auto next = [&] {
    const auto found = set.record().collection();
    return drawn.next(set.overlay(), found->id, found->count, true, random);
  };
  SECTION("the first is drawn by itself, the others come from what was read") {
    constexpr int rounds = 500;  // fewer would not tell chance from a fault
    std::map<Members, int> orders;
    for (int round = 0; round < rounds; ++round) {
      set.add_all(numbered_members(4));
      REQUIRE_FALSE(next());
      REQUIRE(set.remove(numbered_members(4).front()));
      Members order;
      while (order.size() < 3) {
        const auto member = next();
        REQUIRE(member);
        order.push_back(*member);
        REQUIRE(set.remove(*member));
      }
      ++orders[order];
      set.commit();
    }
    CHECK(orders.size() == 6);
    for (const auto& [order, count] : orders) {
      CHECK(count > rounds / 12);
      CHECK(count < rounds / 3);
    }
  }
  SECTION("what somebody else changes meanwhile is seen") {
    set.add_all(numbered_members(100));
    REQUIRE_FALSE(next());
    REQUIRE(set.remove(numbered_members(100).front()));
    const auto member = next();
    REQUIRE(member);
    REQUIRE(set.remove(*member));
    REQUIRE(set.add("late"));
    CHECK_FALSE(next());  // the count is another than it left: drawn by itself
    SetModel left;
    for (const std::string& each : set.all()) left.insert(each);
    REQUIRE(set.remove(*left.begin()));
    left.erase(left.begin());
    REQUIRE(set.remove(*left.begin()));
    REQUIRE(set.add("later"));
    left.erase(left.begin());
    left.insert("later");
    while (!left.empty()) {
      const auto each = next();
      REQUIRE(each);
      REQUIRE(left.erase(*each) == 1);
      REQUIRE(set.remove(*each));
    }
  }
  SECTION("members that are too many bytes to be held are drawn by themselves") {
    Members large;
    for (char name = 'a'; name < 'k'; ++name) large.emplace_back(10'000, name);
    set.add_all(large);
    REQUIRE_FALSE(next());
    REQUIRE(set.remove(large.front()));
    CHECK_FALSE(next());
  }
}

TEST_CASE("a large set whose members are gone is an error, and is not looked through for ever",
          "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = kAlwaysLarge, .intset_entries_max = 512});
  const int members = GENERATE(5, 100);
  set.add_all(numbered_members(members));
  set.commit();
  for (const auto& [key, value] : set.records_of(Space::kData)) {
    set.overlay().remove(Space::kData, key);
  }
  const Record found = set.record();
  SetReader reader(set.overlay(), found);
  std::mt19937_64 random(1);
  std::string member;
  CHECK_FALSE(reader.random(random, &member));
  CHECK(set.take_error().code() == Status::Code::kCorruption);
  CHECK_FALSE(reader.contains("m1"));
  CHECK_FALSE(set.overlay().failed());
  // Nor is one that has far fewer than its record counts.
  set.add_all(numbered_members(members));
  set.commit();
  Record many = set.record();
  set.replace_record({.type = storage::ValueType::kSet,
                      .limit_passed = true,
                      .collection = storage::Metadata::Collection{.id = many.collection()->id,
                                                                  .count = uint64_t{1} << 50}});
  many = set.record();
  SetReader claimed(set.overlay(), many);
  CHECK_FALSE(claimed.random(random, &member));
  CHECK(set.take_error().code() == Status::Code::kCorruption);
  int taken = 0;
  commands::draw_few(
      set.overlay(), 2 * members,
      [&](std::string* drawn) {
        *drawn = std::to_string(random() % members);
        return true;
      },
      [&](const std::string&) { ++taken; });
  CHECK(taken == members);
  CHECK(set.take_error().code() == Status::Code::kCorruption);
  // Nor is one whose record counts none.
  set.replace_record({.type = storage::ValueType::kSet,
                      .limit_passed = true,
                      .collection = storage::Metadata::Collection{.id = 99, .count = 0}});
  const Record empty = set.record();
  CHECK_FALSE(SetReader(set.overlay(), empty).random(random, &member));
  CHECK(set.take_error().code() == Status::Code::kCorruption);
}

TEST_CASE("draws that a walk finds fall on each element alike, and none is lost", "[set]") {
  constexpr int kRounds = 300;
  for (const auto& [draws, elements] :
       {std::pair<uint64_t, uint64_t>{1, 1}, {7, 1}, {1, 40}, {40, 40}, {500, 40}, {3, 1000}}) {
    INFO(draws << " of " << elements);
    std::vector<uint64_t> fallen(elements);
    uint64_t twice = 0;
    for (int round = 0; round < kRounds; ++round) {
      commands::FallenDraws walk(draws, elements);
      uint64_t all = 0;
      for (uint64_t& of_this : fallen) {
        const uint64_t times = walk.on_next();
        of_this += times;
        all += times;
        twice += times * (times - 1) / 2;
      }
      CHECK(all == draws);
      CHECK(walk.left() == 0);
    }
    const double expected = static_cast<double>(kRounds * draws) / static_cast<double>(elements);
    double chi_square = 0;
    for (const uint64_t times : fallen) {
      const double off = static_cast<double>(times) - expected;
      chi_square += off * off / expected;
    }
    // Six deviations of what chance gives with so many elements.
    const auto freedom = static_cast<double>(elements - 1);
    CHECK(chi_square <= freedom + 6 * std::sqrt(2 * freedom) + 1);
    // Pairs of draws meet as often as those that know nothing of each other.
    const double pairs = kRounds * static_cast<double>(draws * (draws - 1)) / 2;
    const double met = pairs / static_cast<double>(elements);
    CHECK(std::abs(static_cast<double>(twice) - met) <= 6 * std::sqrt(met) + 1);
  }
}

}  // namespace
}  // namespace ingot::types
