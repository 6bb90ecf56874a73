// Random changes of sorted sets against a plain ordered set.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "tests/src/one_sorted_set.h"

namespace ingot::types {
namespace {

// A sorted set as it is to those who use it, and the form that it must have.
class CheckedSortedSet {
 public:
  CheckedSortedSet(OneSortedSet& set, std::mt19937_64& random) : set_(set), random_(random) {}

  void step() {
    const size_t kind = below(100);
    if (kind < 5) {
      set_.commit();
    } else if (kind < 6) {
      set_.reopen();
    } else if (kind < 9) {
      const State before = state_;
      set_.undone([&] {
        for (size_t i = 0; i <= below(5); ++i) change();
      });
      state_ = before;
    } else if (kind < 10 && below(3) == 0 && !state_.scores.empty()) {
      set_.remove_key();
      state_ = {};
    } else {
      change();
    }
    check();
  }

  // How often an end was told without a walk.
  size_t peeks() const { return peeks_; }

 private:
  struct State {
    std::map<std::string, double> scores;
    std::set<std::pair<double, std::string>> order;
    size_t bytes = 0;  // in the small form
    bool passed = false, large = false;
  };

  size_t below(size_t limit) { return random_() % limit; }

  double score() {
    switch (below(12)) {
      case 0:
        return -0.0;
      case 1:
        return 0.0;
      case 2:
        return below(2) == 0 ? kInfinity : -kInfinity;
      case 3:
        return static_cast<double>(random_()) * 1e-9;
      default:
        return static_cast<double>(below(20)) - 10;
    }
  }
  std::string member() {
    if (below(40) == 0) return std::string(below(40), 'x');
    return "m" + std::to_string(below(150));
  }

  // Some changes by one writer: mostly at random, now and then pops from an end.
  void change() {
    const size_t puts = below(10) < 6 ? 8 : 4;  // of ten
    const size_t pops = below(8) == 0 ? below(20) : 0;
    const bool low_end = below(3) != 0;
    set_.change([&](SortedSetWriter& writer) {
      for (size_t i = 0; i <= below(6); ++i) {
        below(10) < puts ? put(writer, member(), score()) : remove(writer, member());
      }
      for (size_t i = 0; i < pops && !state_.order.empty(); ++i) {
        const auto end = low_end ? *state_.order.begin() : *state_.order.rbegin();
        using End = SortedSetWriter::End;
        if (const auto peeked = writer.peek(low_end ? End::kLowest : End::kHighest)) {
          REQUIRE(peeked->member == end.second);
          REQUIRE(score_text(peeked->score) == score_text(state_.scores.at(end.second)));
          ++peeks_;
        }
        remove(writer, end.second);
      }
      REQUIRE(writer.size() == state_.scores.size());
    });
    if (state_.scores.empty()) state_ = {};
  }
  void put(SortedSetWriter& writer, const std::string& member, double score) {
    writer.put(member, score);
    const auto found = state_.scores.find(member);
    if (found == state_.scores.end()) {
      state_.passed = state_.passed || member.size() > set_.limits().listpack_value_max ||
                      state_.scores.size() >= set_.limits().listpack_entries_max;
      state_.bytes += packed_bytes(member) + sizeof(double);  // none is long
    } else {
      state_.order.erase({found->second, member});
    }
    if (!state_.passed && score == 0) score = 0;
    state_.scores[member] = score;
    state_.order.emplace(score, member);
    state_.large = state_.large || state_.bytes > set_.limits().inline_max_bytes;
  }
  void remove(SortedSetWriter& writer, const std::string& member) {
    const auto found = state_.scores.find(member);
    REQUIRE(writer.remove(member) == (found != state_.scores.end()));
    if (found == state_.scores.end()) return;
    state_.order.erase({found->second, member});
    state_.scores.erase(found);
    state_.bytes -= packed_bytes(member) + sizeof(double);
  }

  void check() {
    REQUIRE(set_.exists() == !state_.scores.empty());
    if (state_.scores.empty()) return;
    REQUIRE(set_.encoding() == (state_.passed ? "skiplist" : "listpack"));
    REQUIRE(set_.is_large() == state_.large);
    REQUIRE(set_.keys().counts(0).keys == 1);
    Scored expected;
    for (const auto& [score, member] : state_.order) {
      expected.emplace_back(member, score_text(state_.scores.at(member)));
    }
    REQUIRE(set_.all() == expected);
    if (state_.large) REQUIRE(set_.lowest_noted() == expected.front().first);
    check_member(member(), expected);
    check_range(expected);
  }
  void check_member(const std::string& member, const Scored& expected) {
    const auto found = state_.scores.find(member);
    if (found == state_.scores.end()) {
      REQUIRE_FALSE(set_.score(member));
      REQUIRE_FALSE(set_.rank(member));
      return;
    }
    const auto place = std::ranges::find(expected, member, &Scored::value_type::first);
    REQUIRE(score_text(*set_.score(member)) == place->second);
    REQUIRE(set_.rank(member) == static_cast<uint64_t>(place - expected.begin()));
  }
  void check_range(Scored expected) {
    const double low = score();
    const bool exclusive = below(2) == 0;
    const RankRange ranks = set_.ask([&](SortedSetReader& reader) {
      return reader.between({.score = low, .exclusive = exclusive}, ScoreBound{.score = kInfinity});
    });
    const auto first = std::ranges::count_if(state_.order, [&](const auto& each) {
      return exclusive ? each.first <= low : each.first < low;
    });
    REQUIRE(ranks.first == static_cast<uint64_t>(first));
    REQUIRE(ranks.end == expected.size());
    expected.erase(expected.begin(), expected.begin() + first);
    std::ranges::reverse(expected);
    REQUIRE(set_.walked(ranks, true) == expected);
  }

  OneSortedSet& set_;
  std::mt19937_64& random_;
  State state_;
  size_t peeks_ = 0;
};

TEST_CASE("random changes agree with a plain sorted set", "[sorted_set]") {
  const uint64_t inline_max = GENERATE(uint64_t{400}, kAlwaysLarge, kAlwaysSmall);
  OneSortedSet set(
      each_engine(),
      {.inline_max_bytes = inline_max, .listpack_entries_max = 30, .listpack_value_max = 20});
  const uint64_t seed = std::random_device{}();
  INFO("inline_max " << inline_max << ", seed " << seed);
  std::mt19937_64 random(seed);
  CheckedSortedSet checked(set, random);
  const auto lacks_peeks = [&] { return inline_max != kAlwaysSmall && checked.peeks() == 0; };
  for (size_t step = 0; step < set.steps(2000) || (lacks_peeks() && step < 2000); ++step) {
    INFO("step " << step);
    checked.step();
  }
  CHECK((checked.peeks() > 0) == (inline_max != kAlwaysSmall));
}

}  // namespace
}  // namespace ingot::types
