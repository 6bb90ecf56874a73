// Sorted sets on disk, small and large, on every engine: their forms, order, ranks and ranges, and
// what is taken back.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/types/sorted_set_builder.h"
#include "tests/src/one_sorted_set.h"

namespace ingot::types {
namespace {

using storage::Space;
using storage::Status;

TEST_CASE("a sorted set is small up to the limit, and then large for good", "[sorted_set]") {
  OneSortedSet set(each_engine(), 40);
  set.put("c", 1);  // ten bytes in the record
  set.put("b", 2);
  set.put("a", 1);
  CHECK(set.all() == Scored{{"a", "1"}, {"c", "1"}, {"b", "2"}});
  CHECK(set.record().payload().size() == 30);
  set.put("d", 0);
  CHECK(set.record().payload().size() == 40);
  for (int i = 0; i < 10; ++i) set.put("d", i);
  CHECK(set.remove("d"));
  set.put("d", 0);
  CHECK_FALSE(set.is_large());
  CHECK(set.records_in(Space::kData) == 0);
  CHECK(set.records_in(Space::kOrder) == 0);

  set.put("", -1);
  REQUIRE(set.is_large());
  CHECK(set.record().collection()->id == TypedStore::kFirstCollection);
  CHECK(set.record().collection()->count == 5);
  CHECK(set.all() == Scored{{"", "-1"}, {"d", "0"}, {"a", "1"}, {"c", "1"}, {"b", "2"}});
  CHECK(set.records_in(Space::kData) == 5);
  CHECK(set.keys().counts(0).keys == 1);
  const uint32_t revision = set.record().collection()->revision;
  set.put("b", 3);
  CHECK(set.record().collection()->revision == revision + 1);
  set.reopen();
  CHECK(set.all() == Scored{{"", "-1"}, {"d", "0"}, {"a", "1"}, {"c", "1"}, {"b", "3"}});

  for (const char* member : {"a", "b", "", "d"}) CHECK(set.remove(member));
  CHECK_FALSE(set.remove("a"));
  CHECK(set.is_large());
  CHECK(set.all() == Scored{{"c", "1"}});
  CHECK(set.remove("c"));
  CHECK_FALSE(set.exists());
  CHECK(set.effects().dropped_collections ==
        std::vector<storage::CollectionId>{TypedStore::kFirstCollection});
  CHECK(set.keys().counts(0).keys == 0);
  set.put("a", 1);
  CHECK_FALSE(set.is_large());
}

TEST_CASE("no record of a small sorted set is longer than the limit", "[sorted_set]") {
  // Members whose length takes a byte more with the score before them than alone.
  const size_t length = GENERATE(range(115, 130));
  const SortedSetLimits limits{
      .inline_max_bytes = 132, .listpack_entries_max = 128, .listpack_value_max = 64};
  OneSortedSet set("memory", limits);
  const std::string member(length, 'x');
  set.put(member, 1);
  const size_t bytes = 8 + length + (8 + length < 128 ? 1 : 2);
  INFO(bytes);
  CHECK(set.is_large() == (bytes > 132));
  if (!set.is_large()) CHECK(set.record().payload().size() == bytes);
  // Nor does it become large by a change that makes it no longer.
  const bool was_large = set.is_large();
  set.put(member, 2);
  CHECK(set.is_large() == was_large);
  OneSortedSet built("memory", limits);
  built.build<SortedSetBuilder>(limits, [&](SortedSetBuilder& builder) { builder.add(member, 1); });
  CHECK(built.is_large() == was_large);
}

TEST_CASE("sorted sets change their encoding as in Redis", "[sorted_set]") {
  const SortedSetLimits limits{
      .inline_max_bytes = each_form(), .listpack_entries_max = 4, .listpack_value_max = 10};
  OneSortedSet set(each_engine(), limits);
  for (const char* member : {"a", "b", "c", "0123456789"}) set.put(member, 1);
  set.put("a", 2);  // no new one
  CHECK(set.encoding() == "listpack");
  SECTION("by a member too many") {
    CHECK(set.remove("b"));
    set.put("d", 1);
    CHECK(set.encoding() == "listpack");
    set.put("e", 1);
    CHECK(set.encoding() == "skiplist");
    CHECK(set.remove("d"));
  }
  SECTION("by a long member") {
    CHECK(set.remove("b"));
    set.put("0123456789a", 1);
    CHECK(set.encoding() == "skiplist");
    CHECK(set.remove("0123456789a"));
  }
  set.commit();
  CHECK(set.encoding() == "skiplist");
  set.put("a", 1);
  CHECK(set.encoding() == "skiplist");
}

TEST_CASE("the packed encoding has no -0, the other one has", "[sorted_set]") {
  const SortedSetLimits limits{
      .inline_max_bytes = each_form(), .listpack_entries_max = 3, .listpack_value_max = 10};
  OneSortedSet set(each_engine(), limits);
  set.put("b", -0.0);
  set.put("a", 0.0);
  set.put("c", -kTiny);
  CHECK(set.all() == Scored{{"c", score_text(-kTiny)}, {"a", "0"}, {"b", "0"}});
  set.put("d", -0.0);  // the encoding changes with this one
  set.put("e", kTiny);
  set.put("a", -0.0);
  const Scored expected{
      {"c", score_text(-kTiny)}, {"a", "-0"}, {"b", "0"}, {"d", "-0"}, {"e", score_text(kTiny)}};
  CHECK(set.all() == expected);
  set.reopen();
  CHECK(set.all() == expected);
  CHECK(std::signbit(*set.score("d")));
  CHECK_FALSE(std::signbit(*set.score("b")));
  CHECK(set.rank("b") == 2);
  // The sign of a zero changes in its place.
  set.put("d", 0.0);
  set.put("b", -0.0);
  CHECK(set.all() == Scored{{"c", score_text(-kTiny)},
                            {"a", "-0"},
                            {"b", "-0"},
                            {"d", "0"},
                            {"e", score_text(kTiny)}});
  // Bounds know no sign either.
  for (const double zero : {0.0, -0.0}) {
    const RankRange zeros = set.ask([&](SortedSetReader& reader) {
      return reader.between(ScoreBound{.score = zero}, ScoreBound{.score = -zero});
    });
    CHECK(zeros.first == 1);
    CHECK(zeros.end == 4);
  }
}

TEST_CASE("scores are told as Redis prints them", "[sorted_set]") {
  CHECK(score_text(3) == "3");
  CHECK(score_text(0.1) == "0.10000000000000001");
  CHECK(score_text(kInfinity) == "inf");
  CHECK(score_text(-kInfinity) == "-inf");
  CHECK(score_text(1e300) == "1.0000000000000001e+300");
}

TEST_CASE("members have scores and ranks, others have none", "[sorted_set]") {
  OneSortedSet set(each_engine(), each_form());
  put_numbered(set, 300);
  set.put("low", -kInfinity);
  set.put("high", kInfinity);
  if (GENERATE(true, false)) set.reopen();
  CHECK(set.size() == 302);
  CHECK(set.score("low") == -kInfinity);
  CHECK(set.score("high") == kInfinity);
  CHECK(set.rank("low") == 0);
  CHECK(set.rank("high") == 301);
  for (const int number : {0, 1, 31, 32, 150, 299}) {
    CHECK(set.score(numbered(number)) == numbered_score(number));
    CHECK(set.rank(numbered(number)) == number + 1);
  }
  CHECK_FALSE(set.score("absent"));
  CHECK_FALSE(set.rank("absent"));
  // The writer answers the same before it has stored anything.
  set.change([&](SortedSetWriter& writer) {
    CHECK(writer.size() == 302);
    CHECK(writer.score(numbered(31)) == 3);
    CHECK_FALSE(writer.score("absent"));
    writer.put(numbered(31), 500);
    CHECK(writer.score(numbered(31)) == 500);
    CHECK(writer.size() == 302);
    CHECK(writer.remove(numbered(32)));
    CHECK_FALSE(writer.remove(numbered(32)));
    CHECK_FALSE(writer.score(numbered(32)));
    CHECK(writer.size() == 301);
  });
  CHECK(set.rank(numbered(31)) == 299);
  CHECK(set.rank(numbered(33)) == 32);
}

TEST_CASE("ranges by score, with every kind of bound", "[sorted_set]") {
  OneSortedSet set(each_engine(), each_form());
  const std::vector<double> scores = {-kInfinity, -1.5, -kTiny, 0, kTiny, 1, 1e300, kInfinity};
  std::vector<double> stored;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < 7 * (i % 3); ++j) {  // none, some or many with this score
      set.put("m" + std::to_string(j), scores[i]);
      set.put(std::to_string(i) + "/" + std::to_string(j), scores[i]);
      stored.push_back(scores[i]);
    }
  }
  set.change([&](SortedSetWriter& writer) {
    for (int j = 0; j < 14; ++j) writer.remove("m" + std::to_string(j));
  });
  set.commit();
  REQUIRE(set.size() == stored.size());
  for (const double low : scores) {
    for (const double high : scores) {
      for (const int exclusive : {0, 1, 2, 3}) {
        const ScoreBound min{.score = low, .exclusive = (exclusive & 1) != 0};
        const ScoreBound max{.score = high, .exclusive = (exclusive & 2) != 0};
        INFO(low << " to " << high << ", exclusive " << exclusive);
        const auto below = static_cast<uint64_t>(std::ranges::count_if(
            stored, [&](double each) { return min.exclusive ? each <= low : each < low; }));
        const auto up_to = static_cast<uint64_t>(std::ranges::count_if(
            stored, [&](double each) { return max.exclusive ? each < high : each <= high; }));
        const RankRange ranks =
            set.ask([&](SortedSetReader& reader) { return reader.between(min, max); });
        REQUIRE(ranks.first == below);
        REQUIRE(ranks.end == std::max(below, up_to));
      }
    }
  }
}

TEST_CASE("ranges by member, with every kind of bound", "[sorted_set]") {
  OneSortedSet set(each_engine(), each_form());
  const double score = GENERATE(0.0, -3.0, kInfinity);
  std::vector<std::string> members = {"",  std::string(1, '\0'),  "a",   "ab",
                                      "b", std::string("b\0", 2), "\xff"};
  for (int i = 0; i < 60; ++i) members.push_back(numbered(i));
  std::ranges::sort(members);
  set.change([&](SortedSetWriter& writer) {
    for (const std::string& member : members) writer.put(member, score);
  });
  set.commit();
  using Kind = LexBound::Kind;
  std::vector<LexBound> bounds = {{.kind = Kind::kFirst}, {.kind = Kind::kLast}};
  const std::vector<std::string> asked = {
      "", std::string(1, '\0'), "a", "aa", "m0031", "m0031x", "\xff\xff"};
  for (const std::string& member : asked) {
    for (const bool exclusive : {false, true}) {
      bounds.push_back({.kind = Kind::kMember, .member = member, .exclusive = exclusive});
    }
  }
  // How many stand before it; `behind` counts an equal one as well.
  auto before = [&](const LexBound& bound, bool behind) -> uint64_t {
    if (bound.kind == Kind::kFirst) return 0;
    if (bound.kind == Kind::kLast) return members.size();
    return static_cast<uint64_t>(std::ranges::count_if(members, [&](const std::string& each) {
      return behind ? each <= bound.member : each < bound.member;
    }));
  };
  for (const LexBound& min : bounds) {
    for (const LexBound& max : bounds) {
      const uint64_t first = before(min, min.exclusive);
      const uint64_t end = before(max, !max.exclusive);
      INFO(static_cast<int>(min.kind) << " " << min.member << " to " << max.member);
      const RankRange ranks =
          set.ask([&](SortedSetReader& reader) { return reader.between(min, max); });
      REQUIRE(ranks.first == first);
      REQUIRE(ranks.end == std::max(first, end));
    }
  }
}

TEST_CASE("a walk goes over ranks from either end", "[sorted_set]") {
  OneSortedSet set(each_engine(), each_form());
  put_numbered(set, 200);
  set.commit();
  Scored all;
  for (int i = 0; i < 200; ++i) {
    all.emplace_back(numbered(i), score_text(numbered_score(i)));
  }
  CHECK(set.all() == all);
  for (const RankRange& ranks :
       {RankRange{0, 0}, RankRange{0, 1}, RankRange{0, 200}, RankRange{31, 33}, RankRange{50, 150},
        RankRange{199, 200}, RankRange{200, 200}}) {
    INFO(ranks.first << " to " << ranks.end);
    Scored expected(all.begin() + static_cast<long>(ranks.first),
                    all.begin() + static_cast<long>(ranks.end));
    CHECK(set.walked(ranks, false) == expected);
    std::ranges::reverse(expected);
    CHECK(set.walked(ranks, true) == expected);
  }
  // And stops when it is told to.
  for (const bool reverse : {false, true}) {
    const int seen = set.ask([&](SortedSetReader& reader) {
      int count = 0;
      reader.walk({.first = 20, .end = 180}, reverse,
                  [&](std::string_view, double) { return ++count < 70; });
      return count;
    });
    CHECK(seen == 70);
  }
}

TEST_CASE("the record of a large sorted set notes where it begins", "[sorted_set]") {
  OneSortedSet set(each_engine(), kAlwaysLarge);
  put_numbered(set, 150);
  CHECK(set.lowest_noted() == numbered(0));
  // Pops from the low end, some by one writer, groups in between.
  for (int first = 0; first < 120;) {
    const int count = 1 + first % 4;
    set.change([&](SortedSetWriter& writer) {
      for (int i = 0; i < count; ++i) REQUIRE(writer.remove(numbered(first + i)));
    });
    first += count;
    if (first % 3 == 0) set.commit();
    if (first % 50 == 0) set.reopen();
    REQUIRE(set.lowest_noted() == numbered(first));
    REQUIRE(set.rank(numbered(first)) == 0);
    REQUIRE(set.size() == static_cast<uint64_t>(150 - first));
    REQUIRE(set.walked({.first = 0, .end = 2}, false).front().first == numbered(first));
  }
  const std::string lowest = set.all().front().first;
  CHECK(set.lowest_noted() == lowest);
  // One that goes from the middle does not matter, one that comes or moves before it does.
  CHECK(set.remove(numbered(140)));
  CHECK(set.lowest_noted() == lowest);
  set.put("first", -5);
  CHECK(set.lowest_noted() == "first");
  set.put(numbered(141), -6);
  CHECK(set.lowest_noted() == numbered(141));
  set.put(numbered(141), 1000);  // the first moves away
  CHECK(set.lowest_noted() == "first");
  set.change([&](SortedSetWriter& writer) {
    writer.put("passing", -100);
    writer.remove("passing");
  });
  CHECK(set.lowest_noted() == "first");
  CHECK(set.all().front() == std::pair<std::string, std::string>("first", "-5"));
  CHECK(set.rank("first") == 0);
  // Emptied and filled by one writer, it has no rest of what was there before.
  set.change([&](SortedSetWriter& writer) {
    for (const auto& [member, score] : set.all()) writer.remove(member);
    writer.put("only", -7);
  });
  CHECK(set.lowest_noted() == "only");
  CHECK(set.all() == Scored{{"only", "-7"}});
}

TEST_CASE("the leaves of a range hold its members and say which they are", "[sorted_set]") {
  OneSortedSet set(each_engine(), kAlwaysLarge);
  put_numbered(set, 200);
  set.commit();
  const Record found = set.record();
  SortedSetReader reader(set.overlay(), found);
  for (const RankRange& ranks : {RankRange{0, 1}, RankRange{0, 200}, RankRange{31, 33},
                                 RankRange{77, 140}, RankRange{199, 200}}) {
    INFO(ranks.first << " to " << ranks.end);
    const CountedOrder::Leaves leaves = reader.leaves(ranks);
    Scored members;
    const auto at = set.overlay().cursor(Space::kOrder, leaves.lower, leaves.upper);
    for (at->seek(leaves.lower); at->valid(); at->next()) {
      REQUIRE(read_order(at->value(), leaves.first, leaves.last,
                         [&](std::string_view member, double score) {
                           members.emplace_back(member, score_text(score));
                           return true;
                         }));
    }
    CHECK(members == set.walked(ranks, false));
  }
  REQUIRE_FALSE(set.overlay().failed());
  // There are no leaves of ranks that are not there.
  reader.leaves({.first = 200, .end = 201});
  CHECK(set.take_error().code() == Status::Code::kCorruption);
}

TEST_CASE("random members of a sorted set are each as likely as any other", "[sorted_set]") {
  OneSortedSet set(each_engine(), each_form());
  for (const int members : {1, 10, 40}) {
    put_numbered(set, members);
    set.commit();
    const Record found = set.record();
    SortedSetReader reader(set.overlay(), found);
    std::mt19937_64 random(1);
    std::map<std::string, int> drawn;
    ScoredMember member;
    for (int i = 0; i < members * 100; ++i) {
      REQUIRE(reader.random(random, &member));
      REQUIRE(reader.score(member.member) == member.score);
      ++drawn[member.member];
    }
    CHECK(drawn.size() == static_cast<size_t>(members));
    for (const auto& [name, times] : drawn) {
      INFO(name);
      CHECK(times > 50);
      CHECK(times < 160);
    }
    set.remove_key();
  }
}

TEST_CASE("changes of a sorted set are taken back as if they had never been made", "[sorted_set]") {
  const uint64_t inline_max = GENERATE(uint64_t{2200}, kAlwaysLarge);
  OneSortedSet set(each_engine(), inline_max);
  const bool committed = GENERATE(true, false);
  put_numbered(set, 150);
  if (committed) set.reopen();  // nothing of the order is in memory
  auto nothing_happened = [&](const auto& changes) {
    const auto before = set.contents();
    const uint64_t keys_before = set.keys().counts(0).keys;
    set.undone([&] {
      changes();
      CHECK(set.contents() != before);
    });
    CHECK(set.contents() == before);
    CHECK(set.keys().counts(0).keys == keys_before);
    CHECK(set.effects().dropped_collections.empty());
  };
  nothing_happened([&] { set.put("new", 3); });
  nothing_happened([&] {
    set.change([](SortedSetWriter& writer) {
      for (int i = 0; i < 200; ++i) writer.put("n" + std::to_string(i), i % 17);  // leaves split
      for (int i = 0; i < 100; ++i) writer.put(numbered(i), 100 - i);             // and join
      for (int i = 0; i < 90; ++i) writer.remove(numbered(i));
    });
  });
  nothing_happened([&] { set.remove_key(); });
  put_numbered(set, 140);
  set.put("between", 3.5);
  nothing_happened([&] {
    for (int i = 0; i < 50; ++i) REQUIRE(set.remove(numbered(i)));
  });
  // The order in memory is that of the records: it counts right from here on.
  set.put("behind", 7.5);
  for (int i = 0; i < 40; ++i) REQUIRE(set.remove(numbered(i)));
  CHECK(set.rank("between") == 0);
  CHECK(set.rank("behind") == 41);
  set.reopen();
  CHECK(set.rank("behind") == 41);
  CHECK(set.size() == 112);
  CHECK(set.all().size() == 112);
}

TEST_CASE("a sorted set that is built is the one that is written", "[sorted_set]") {
  const SortedSetLimits limits{
      .inline_max_bytes = 40, .listpack_entries_max = 20, .listpack_value_max = 24};
  const std::string engine = each_engine();
  OneSortedSet written(engine, limits);
  OneSortedSet built(engine, limits);
  using Members = std::vector<ScoredMember>;
  Members many, most;
  for (int i = 0; i < 100; ++i) many.push_back({numbered_score(i), numbered(i)});
  most.assign(many.begin(), many.begin() + 20);
  for (const Members& members :
       {Members{{1, "a"}}, Members{{-kInfinity, "d"}, {0, "a"}, {0, "b"}, {kInfinity, "c"}},
        Members{{1, "a"}, {2, "b"}, {3, "c"}, {4, "dd"}}, most, many,
        Members{{1, std::string(24, 'x')}}, Members{{1, std::string(25, 'x')}}}) {
    INFO(members.size() << " members, the first " << members.front().member);
    for (const ScoredMember& each : members) written.put(each.member, each.score);
    built.build<SortedSetBuilder>(limits, [&](SortedSetBuilder& builder) {
      for (const ScoredMember& each : members) builder.add(each.member, each.score);
    });
    CHECK(built.all() == written.all());
    CHECK(built.encoding() == written.encoding());
    CHECK(built.is_large() == written.is_large());
    CHECK(built.record().payload() == written.record().payload());
    if (built.is_large()) CHECK(built.record().collection()->count == members.size());
    // It is changed as the other is.
    for (OneSortedSet* set : {&written, &built}) {
      set->put("new", 2.5);
      set->remove(members.front().member);
      set->put(members.back().member, -1);
      set->commit();
    }
    CHECK(built.all() == written.all());
    for (const auto& [member, score] : written.all()) {
      CHECK(built.rank(member) == written.rank(member));
    }
    for (OneSortedSet* set : {&written, &built}) set->remove_key();
  }

  // A builder that knows what comes keeps the sign of the first zeros, too.
  const Members zeros = {{-0.0, "a"}, {0.0, "b"}};
  for (const bool told : {true, false}) {
    built.build<SortedSetBuilder>(limits, [&](SortedSetBuilder& builder) {
      builder.expect(2, told ? 25 : 1);
      for (const ScoredMember& each : zeros) builder.add(each.member, each.score);
    });
    CHECK(built.all() == Scored{{"a", told ? "-0" : "0"}, {"b", "0"}});
    CHECK(built.encoding() == (told ? "skiplist" : "listpack"));
  }
  SortedSetBuilder nothing(limits, [](Space, std::string_view, std::string_view) {});
  CHECK(nothing.finish().size == 0);
}

}  // namespace
}  // namespace ingot::types
