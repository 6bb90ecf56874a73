// Sorted sets on disk, small and large, on every engine: their order, ranks and ranges, what is
// taken back or fails in the middle, and random changes against a plain ordered set.
#include "src/types/sorted_set_value.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/types/collection.h"
#include "src/types/member_table.h"
#include "src/types/packed.h"
#include "src/types/sorted_set_builder.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

using storage::Space;
using storage::Status;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr uint64_t kAlwaysLarge = 0;
constexpr uint64_t kAlwaysSmall = 1 << 20;

// Members in order; scores as they are printed, so that -0 is not 0.
using Scored = std::vector<std::pair<std::string, std::string>>;

class OneSortedSet : public TypedStore {
 public:
  OneSortedSet(const std::string& engine, const SortedSetLimits& limits)
      : TypedStore(engine), limits_(limits) {}
  // With the other limits far away.
  OneSortedSet(const std::string& engine, uint64_t inline_max)
      : OneSortedSet(engine, {.inline_max_bytes = inline_max,
                              .listpack_entries_max = 10'000,
                              .listpack_value_max = 10'000}) {}

  template <typename Change>
  void change(const Change& change) {
    TypedStore::change<SortedSetWriter>(limits_, change);
  }
  void put(std::string_view member, double score) {
    change([&](SortedSetWriter& set) { set.put(member, score); });
  }
  bool remove(std::string_view member) {
    bool removed = false;
    change([&](SortedSetWriter& set) { removed = set.remove(member); });
    return removed;
  }
  template <typename Ask>
  auto ask(const Ask& ask) {
    const Record found = record();
    SortedSetReader reader(overlay(), found);
    const auto answer = ask(reader);
    REQUIRE_FALSE(overlay().failed());
    return answer;
  }
  Scored walked(const RankRange& ranks, bool reverse) {
    return ask([&](SortedSetReader& reader) {
      Scored members;
      reader.walk(ranks, reverse, [&](std::string_view member, double score) {
        members.emplace_back(member, score_text(score));
        return true;
      });
      return members;
    });
  }
  uint64_t size() {
    return ask([](SortedSetReader& reader) { return reader.size(); });
  }
  Scored all() { return exists() ? walked({.first = 0, .end = size()}, false) : Scored{}; }
  std::optional<double> score(std::string_view member) {
    return ask([&](SortedSetReader& reader) { return reader.score(member); });
  }
  std::optional<uint64_t> rank(std::string_view member) {
    return ask([&](SortedSetReader& reader) { return reader.rank(member); });
  }
  std::string_view encoding() { return encoding_name(record()); }
  // The member before which the record says that none stands.
  std::string lowest_noted() {
    const Record found = record();
    PackedReader reader(found.payload());
    std::string_view item;
    REQUIRE(reader.next(&item));
    REQUIRE(item.size() >= sizeof(double));
    CHECK(reader.position() == found.payload().size());
    return std::string(item.substr(sizeof(double)));
  }
  const SortedSetLimits& limits() const { return limits_; }

 private:
  const SortedSetLimits limits_;
};

uint64_t each_form() {
  return GENERATE(kAlwaysLarge, kAlwaysSmall);
}

// Enough for several leaves of the order; scores rise in steps of ten members.
std::string numbered(int number) {
  const std::string digits = std::to_string(number);
  return "m" + std::string(4 - digits.size(), '0') + digits;
}
double numbered_score(int number) {
  return number / 10;
}
void put_numbered(OneSortedSet& set, int count) {
  set.change([&](SortedSetWriter& writer) {
    for (int i = 0; i < count; ++i) writer.put(numbered(i), numbered_score(i));
  });
}

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
  const uint64_t inline_max = GENERATE(kAlwaysLarge, uint64_t{2200});
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

TEST_CASE("a sorted set whose engine fails is left as it was", "[sorted_set]") {
  const uint64_t inline_max = GENERATE(kAlwaysLarge, uint64_t{900}, kAlwaysSmall);
  OneSortedSet set(each_engine(), inline_max);
  put_numbered(set, 60);
  set.commit();
  const auto before = set.contents();
  const Scored members = set.all();
  bool failed = true;
  int failures = 0;
  for (int reads = 0; failed; ++reads) {
    if (reads % 2 == 0) set.state().orders = {};  // loaded anew, and that may fail as well
    set.undone([&] {
      set.engine().fail_reads_after(reads);
      set.change([](SortedSetWriter& writer) {
        writer.remove(numbered(0));
        writer.put(numbered(1), 50);
        for (int i = 0; i < 5; ++i) writer.put("new" + std::to_string(i), 2);
      });
      failed = set.engine().read_failed();
      set.engine().fail_reads_after(-1);
      REQUIRE(set.overlay().failed() == failed);
      REQUIRE(set.take_error().code() == (failed ? Status::Code::kIo : Status::Code::kOk));
      if (!failed) CHECK(set.rank("new4") == 32);
    });
    failures += failed;
    REQUIRE(set.contents() == before);
    REQUIRE(set.all() == members);
  }
  CHECK(failures >= (set.is_large() ? 15 : 1));

  // A reader that has found its record latches whatever it cannot read.
  const Record found = set.record();
  for (int reads = 0; set.is_large() && reads < 4; ++reads) {
    SortedSetReader reader(set.overlay(), found);
    auto fails = [&](const auto& read) {
      set.engine().fail_reads_after(reads);
      while (!set.engine().read_failed()) read(reader);
      set.engine().fail_reads_after(-1);
      CHECK(set.take_error().code() == Status::Code::kIo);
    };
    std::mt19937_64 random(1);
    ScoredMember member;
    fails([](SortedSetReader& each) { (void)each.score(numbered(5)); });
    fails([](SortedSetReader& each) { (void)each.rank(numbered(5)); });
    fails([](SortedSetReader& each) { each.between(ScoreBound{.score = 1}, {.score = 3}); });
    fails([](SortedSetReader& each) {
      each.between(LexBound{.kind = LexBound::Kind::kMember, .member = "m"}, LexBound{});
    });
    fails([](SortedSetReader& each) {
      each.walk({.first = 2, .end = 50}, true, [](std::string_view, double) { return true; });
    });
    fails([](SortedSetReader& each) { each.leaves({.first = 2, .end = 50}); });
    fails([&](SortedSetReader& each) { each.random(random, &member); });
  }

  set.engine().fail_after(0);
  set.put("new", 2);
  CHECK(set.rank("new"));
  CHECK_FALSE(set.try_commit().ok());
  set.engine().fail_after(-1);
  CHECK(set.contents() == before);
  // The order in memory forgot the group, too.
  set.put("other", 2);
  CHECK(set.rank("other") == 30);
  CHECK(set.rank(numbered(30)) == 31);
}

TEST_CASE("bytes that are no small sorted set are an error", "[sorted_set]") {
  OneSortedSet set(each_engine(), uint64_t{1000});
  auto corrupt = [&] { return set.take_error().code() == Status::Code::kCorruption; };
  for (const std::string& bad : {std::string("\x80"),
                                 std::string("\x09"
                                             "12345678"),
                                 std::string("\x07"
                                             "1234567"),
                                 std::string("\x00", 1)}) {
    set.replace_record({.type = storage::ValueType::kSortedSet, .payload = bad});
    const Record found = set.record();
    const SortedSetReader reader(set.overlay(), found);
    CHECK(corrupt());
    set.put("a", 1);
    CHECK(corrupt());
    set.replace_record({.type = storage::ValueType::kSortedSet, .payload = bad});
    set.remove("a");
    CHECK(corrupt());
  }
  // A large one notes its first item, or it is none.
  for (const std::string& bad : {std::string(), std::string("\x05"), std::string("\x80")}) {
    set.replace_record({.type = storage::ValueType::kSortedSet,
                        .collection = storage::Metadata::Collection{.id = 99, .count = 1},
                        .payload = bad});
    const Record found = set.record();
    const SortedSetReader reader(set.overlay(), found);
    CHECK(corrupt());
    set.put("a", 1);
    CHECK(corrupt());
  }
}

// Everything that reads a large sorted set or changes it, to see that it comes to an end. True when
// all of it is quiet.
bool use_everything(OneSortedSet& set) {
  bool quiet = true;
  auto use = [&](const auto& access) {
    const Record found = set.record();
    SortedSetReader reader(set.overlay(), found);
    set.undone([&] { access(reader); });
    quiet = set.take_error().ok() && quiet;
  };
  const SortedSetReader::Each ignore = [](std::string_view, double) { return true; };
  std::mt19937_64 random(1);
  use([](SortedSetReader& reader) { (void)reader.score(numbered(5)); });
  use([](SortedSetReader& reader) { (void)reader.rank(numbered(5)); });
  use([](SortedSetReader& reader) { reader.between(ScoreBound{.score = 1}, {.score = 3}); });
  use([](SortedSetReader& reader) {
    reader.between(LexBound{.kind = LexBound::Kind::kMember, .member = "m"}, LexBound{});
  });
  use([&](SortedSetReader& reader) { reader.walk({.first = 0, .end = 100}, false, ignore); });
  use([&](SortedSetReader& reader) { reader.walk({.first = 0, .end = 100}, true, ignore); });
  use([&](SortedSetReader& reader) {
    const auto leaves = reader.leaves({.first = 1, .end = 99});
    const auto at = set.overlay().cursor(Space::kOrder, leaves.lower, leaves.upper);
    for (at->seek(leaves.lower); at->valid(); at->next()) {
      if (!read_order(at->value(), leaves.first, leaves.last, ignore)) quiet = false;
    }
  });
  use([&](SortedSetReader& reader) {
    ScoredMember member;
    for (int i = 0; i < 1000; ++i) reader.random(random, &member);
  });
  use([&](SortedSetReader&) {
    set.change([](SortedSetWriter& writer) {
      for (int i = 0; i < 100; i += 3) writer.remove(numbered(i));
      for (int i = 0; i < 100; i += 2) writer.put(numbered(i), 3);
    });
  });
  return quiet;
}

TEST_CASE("a large sorted set with damaged records is an error, and no more", "[sorted_set]") {
  OneSortedSet set(each_engine(), kAlwaysLarge);
  put_numbered(set, 100);
  set.commit();
  REQUIRE(use_everything(set));
  size_t records = 0;
  for (const Space space : {Space::kData, Space::kOrder}) {
    for (const auto& [key, value] : set.records_of(space)) {
      if (space == Space::kData && records++ % (set.on_disk() ? 30 : 4) != 0) continue;
      std::vector<std::string> damaged = {"?", value.substr(0, value.size() - 1)};
      if (space == Space::kOrder && value.size() > 8) {  // a leaf: its count, then its items
        const std::string count = value.substr(0, 4);
        damaged.push_back(count + std::string("\x03"
                                              "abc"));      // without a whole score
        damaged.push_back(count + std::string("\x00", 1));  // a mark of no item
        damaged.push_back(count);
      }
      for (const std::string& bad : damaged) {
        INFO("space " << static_cast<int>(space) << ", " << bad.size() << " bytes");
        set.undone([&] {
          set.overlay().put(space, key, bad);
          CHECK_FALSE(use_everything(set));
        });
      }
      set.undone([&] {  // it is gone
        set.overlay().remove(space, key);
        use_everything(set);
      });
    }
  }
  // A writer that asks for a score notices by itself, before anybody reads.
  set.undone([&] {
    set.overlay().put(Space::kData, member_key(TypedStore::kFirstCollection, numbered(3)), "?");
    set.change([](SortedSetWriter& writer) { CHECK_FALSE(writer.score(numbered(3))); });
    CHECK(set.take_error().code() == Status::Code::kCorruption);
  });
  // So does a reader: of a leaf that is cut it walks over, of a node that it counts by.
  for (const auto& [key, value] : set.records_of(Space::kOrder)) {
    set.undone([&] {
      set.overlay().put(Space::kOrder, key, value.substr(0, value.size() - 1));
      const Record found = set.record();
      SortedSetReader reader(set.overlay(), found);
      if (value.size() > 8) {
        reader.walk([](std::string_view, double) { return true; });
      } else {
        (void)reader.rank(numbered(99));
      }
      CHECK(set.take_error().code() == Status::Code::kCorruption);
    });
  }
  // All are gone.
  for (const Space space : {Space::kOrder, Space::kData}) {
    for (const auto& [key, value] : set.records_of(space)) set.overlay().remove(space, key);
    CHECK_FALSE(use_everything(set));
  }
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
};

TEST_CASE("random changes agree with a plain sorted set", "[sorted_set]") {
  const uint64_t inline_max = GENERATE(kAlwaysLarge, uint64_t{400}, kAlwaysSmall);
  OneSortedSet set(
      each_engine(),
      {.inline_max_bytes = inline_max, .listpack_entries_max = 30, .listpack_value_max = 20});
  const uint64_t seed = std::random_device{}();
  INFO("inline_max " << inline_max << ", seed " << seed);
  std::mt19937_64 random(seed);
  CheckedSortedSet checked(set, random);
  for (size_t step = 0; step < set.steps(2000); ++step) {
    INFO("step " << step);
    checked.step();
  }
}

}  // namespace
}  // namespace ingot::types
