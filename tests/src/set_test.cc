// Sets on disk, small and large, on every engine: their forms and orders, what is taken back or
// fails in the middle, and random changes against a plain set.
#include "src/types/set_value.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/types/collection.h"
#include "src/types/packed.h"
#include "src/types/set_builder.h"
#include "tests/src/one_set.h"

namespace ingot::types {
namespace {

using storage::Space;
using storage::Status;

TEST_CASE("a set is small up to the limit, in the order of addition, and then large for good",
          "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = 20, .intset_entries_max = 512});
  const std::string filling(15, 'x');  // 16 bytes in the record
  CHECK(set.add("b"));
  CHECK(set.add(filling));
  CHECK(set.add("a"));
  CHECK_FALSE(set.add("b"));
  CHECK(set.all() == Members{"b", filling, "a"});
  CHECK(set.record().payload().size() == 20);
  CHECK_FALSE(set.is_large());
  CHECK(set.remove(filling));
  CHECK(set.all() == Members{"b", "a"});
  CHECK(set.add(filling));
  CHECK(set.all() == Members{"b", "a", filling});
  CHECK_FALSE(set.is_large());
  CHECK(set.records_in(Space::kData) == 0);

  CHECK(set.add(""));  // one byte too many
  REQUIRE(set.is_large());
  CHECK(set.record().collection()->id == TypedStore::kFirstCollection);
  CHECK(set.record().collection()->count == 4);
  CHECK(set.record().payload().empty());
  CHECK(set.records_in(Space::kData) == 4);
  CHECK(set.sorted() == SetModel{"", "a", "b", filling});
  CHECK(set.keys().counts(0).keys == 1);
  set.reopen();
  CHECK(set.sorted() == SetModel{"", "a", "b", filling});

  for (const char* member : {"", "a"}) CHECK(set.remove(member));
  CHECK_FALSE(set.remove("a"));
  CHECK(set.remove(filling));
  CHECK(set.is_large());
  CHECK(set.all() == Members{"b"});
  CHECK(set.remove("b"));
  CHECK_FALSE(set.exists());
  CHECK(set.effects().dropped_collections ==
        std::vector<storage::CollectionId>{TypedStore::kFirstCollection});
  CHECK(set.records_in(Space::kGarbage) == 1);
  CHECK(set.keys().counts(0).keys == 0);
  // What comes next under the key begins small.
  CHECK(set.add("b"));
  CHECK_FALSE(set.is_large());
}

TEST_CASE("a set that is emptied while it is small leaves nothing", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = 20, .intset_entries_max = 512});
  set.add("a");
  set.add("1");
  set.commit();
  CHECK(set.remove("a"));
  CHECK(set.remove("1"));
  set.reopen();
  for (const TypedStore::Records& records : set.contents()) CHECK(records.empty());
  CHECK(set.effects().dropped_collections.empty());
}

TEST_CASE("an intset is in numeric order, in either form", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = each_form(), .intset_entries_max = 512});
  const std::string lowest = std::to_string(std::numeric_limits<int64_t>::min());
  const std::string highest = std::to_string(std::numeric_limits<int64_t>::max());
  set.add_all({"10", "-5", highest, "9", "0", lowest, "100"});
  CHECK(set.encoding() == "intset");
  CHECK(set.all() == Members{lowest, "-5", "0", "9", "10", "100", highest});
  CHECK_FALSE(set.add("9"));
  CHECK(set.remove("10"));
  CHECK_FALSE(set.remove("11"));
  CHECK_FALSE(set.remove("x"));
  CHECK_FALSE(set.contains("10"));
  CHECK(set.contains(highest));
  CHECK(set.encoding() == "intset");

  // One member that is no number ends the intset, also when it has gone again.
  set.commit();
  CHECK(set.add("x"));
  CHECK(set.encoding() == "hashtable");
  set.add_all({"50", "-7"});
  CHECK(set.remove("x"));
  CHECK(set.encoding() == "hashtable");
  CHECK(set.sorted() == model_of({lowest, "-5", "0", "9", "100", highest, "50", "-7"}));
  if (!set.is_large()) {
    CHECK(set.all() == Members{lowest, "-5", "0", "9", "100", highest, "50", "-7"});
  }
  CHECK(set.contains("-7"));
}

TEST_CASE("only what a number is printed as belongs in an intset", "[set]") {
  CHECK(intset_number("0") == 0);
  CHECK(intset_number("-12") == -12);
  CHECK(intset_number("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(intset_number("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  OneSet set("memory", {.inline_max_bytes = kAlwaysSmall, .intset_entries_max = 512});
  for (const std::string& other :
       {std::string(), std::string("-"), std::string("-0"), std::string("+1"), std::string("01"),
        std::string("-01"), std::string(" 1"), std::string("1 "), std::string("1.0"),
        std::string("1e2"), std::string("9223372036854775808"), std::string("1\0", 2)}) {
    INFO('"' << other << '"');
    CHECK_FALSE(intset_number(other));
    set.add("1");
    CHECK(set.encoding() == "intset");
    set.add(other);
    CHECK(set.encoding() == "hashtable");
    set.remove_key();
  }
}

TEST_CASE("an intset has no more members than its limit", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = each_form(), .intset_entries_max = 4});
  set.add_all({"4", "3", "2", "1"});
  CHECK_FALSE(set.add("1"));
  CHECK(set.remove("4"));
  CHECK(set.add("5"));
  CHECK(set.encoding() == "intset");
  CHECK(set.all() == Members{"1", "2", "3", "5"});
  CHECK(set.add("4"));
  CHECK(set.encoding() == "hashtable");
  CHECK(set.remove("4"));
  CHECK(set.encoding() == "hashtable");
  CHECK(set.sorted() == SetModel{"1", "2", "3", "5"});
}

TEST_CASE("a change that changes nothing writes nothing", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = each_form(), .intset_entries_max = 512});
  set.add_all({"a", "b"});
  set.commit();
  const uint64_t changes = set.effects().changes;
  CHECK_FALSE(set.add("a"));
  CHECK_FALSE(set.remove("c"));
  CHECK(set.overlay().empty());
  CHECK(set.effects().changes == changes);
  const bool was_large = set.is_large();
  const uint32_t revision = was_large ? set.record().collection()->revision : 0;
  CHECK(set.add("c"));
  if (was_large) CHECK(set.record().collection()->revision == revision + 1);
  CHECK(set.effects().changes == changes + 1);
}

TEST_CASE("a walk over a set stops when it is told to", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = each_form(), .intset_entries_max = 512});
  const bool numbers = GENERATE(true, false);
  for (int i = 0; i < 20; ++i) set.add((numbers ? "" : "m") + std::to_string(i));
  const Members all = set.all();
  const Record found = set.record();
  Members seen;
  SetReader(set.overlay(), found).walk([&](std::string_view member) {
    seen.emplace_back(member);
    return seen.size() < 7;
  });
  CHECK(seen == Members(all.begin(), all.begin() + 7));
}

TEST_CASE("changes of a set are taken back as if they had never been made", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = 30, .intset_entries_max = 4});
  const bool committed = GENERATE(true, false);
  set.add_all({"1", "2", "3"});
  if (committed) set.commit();
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
  nothing_happened([&] { set.add_all({"a", "4"}); });
  CHECK(set.encoding() == "intset");
  nothing_happened([&] { set.add_all(numbered_members(20)); });  // it becomes large
  nothing_happened([&] {
    for (const char* member : {"1", "2", "3"}) set.remove(member);
    set.add("other");
  });
  set.add_all(numbered_members(20));
  if (committed) set.commit();
  nothing_happened([&] { set.remove("m3"); });
  nothing_happened([&] { set.remove_key(); });
  // In the middle of a group, what came before stays.
  set.add("before");
  nothing_happened([&] { set.add("within"); });
  set.add("behind");
  set.reopen();
  CHECK(set.contains("before"));
  CHECK_FALSE(set.contains("within"));
  CHECK(set.contains("behind"));
  CHECK(set.all().size() == 25);
}

TEST_CASE("a set whose engine fails is left as it was", "[set]") {
  const uint64_t inline_max = GENERATE(uint64_t{60}, kAlwaysLarge, kAlwaysSmall);
  OneSet set(each_engine(), {.inline_max_bytes = inline_max, .intset_entries_max = 4});
  set.add_all(numbered_members(17));
  set.commit();
  const auto before = set.contents();
  // The first read fails, then the second, until there is none that could.
  bool failed = true;
  int failures = 0;
  for (int reads = 0; failed; ++reads) {
    set.undone([&] {
      set.engine().fail_reads_after(reads);
      set.change([&](SetWriter& writer) {
        writer.remove("m3");
        for (const std::string& member : numbered_members(25)) writer.add(member);
      });
      failed = set.engine().read_failed();
      set.engine().fail_reads_after(-1);
      CHECK(set.overlay().failed() == failed);
      CHECK(set.take_error().code() == (failed ? Status::Code::kIo : Status::Code::kOk));
      if (!failed) CHECK(set.sorted() == model_of(numbered_members(25)));
    });
    failures += failed;
    CHECK(set.contents() == before);
  }
  CHECK(failures >= 1);

  // The same of a reader, which has found its record.
  const Record found = set.record();
  for (const int reads : {0, 1, 5}) {
    if (!set.is_large()) break;  // there is nothing left to be read
    SetReader reader(set.overlay(), found);
    std::mt19937_64 random(1);
    std::string member;
    size_t walked = 0;
    set.engine().fail_reads_after(reads);
    reader.walk([&](std::string_view) { return ++walked < 100; });
    CHECK(walked < 17);
    CHECK(set.take_error().code() == Status::Code::kIo);
    CHECK_FALSE(reader.contains("m3"));
    CHECK(set.take_error().code() == Status::Code::kIo);
    CHECK_FALSE(reader.random(random, &member));
    CHECK(set.take_error().code() == Status::Code::kIo);
    set.engine().fail_reads_after(-1);
  }

  // A group that is not written.
  set.engine().fail_after(0);
  set.add("new");
  CHECK(set.contains("new"));
  CHECK_FALSE(set.try_commit().ok());
  set.engine().fail_after(-1);
  CHECK(set.contents() == before);
  CHECK_FALSE(set.contains("new"));
}

TEST_CASE("bytes that are no set are an error", "[set]") {
  OneSet set(each_engine(), {.inline_max_bytes = 1000, .intset_entries_max = 512});
  const bool intset = GENERATE(true, false);
  auto corrupt = [&] { return set.take_error().code() == Status::Code::kCorruption; };
  for (const std::string& bad : {std::string("\x05"), std::string("\x80"),
                                 std::string("\x01"
                                             "1"
                                             "\x02"
                                             "2"),
                                 std::string("\x01"
                                             "1"
                                             "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    set.replace_record({.type = storage::ValueType::kSet, .limit_passed = !intset, .payload = bad});
    const Record found = set.record();
    SetReader reader(set.overlay(), found);
    std::mt19937_64 random(1);
    std::string member;
    reader.size();
    CHECK(corrupt());
    CHECK_FALSE(reader.contains("absent"));
    CHECK(corrupt());
    reader.walk([](std::string_view) { return true; });
    CHECK(corrupt());
    CHECK_FALSE(reader.random(random, &member));
    CHECK(corrupt());
    set.add("7");
    CHECK(corrupt());
    set.replace_record({.type = storage::ValueType::kSet, .payload = bad});
    set.remove("7");
    CHECK(corrupt());
  }
}

TEST_CASE("a set that is built is the set that is written", "[set]") {
  const SetLimits limits{.inline_max_bytes = 24, .intset_entries_max = 8};
  const std::string engine = each_engine();
  OneSet written(engine, limits);
  OneSet built(engine, limits);
  auto compare = [&](const Members& members) {
    INFO(members.size() << " members, the first " << members.front());
    written.add_all(members);
    built.build<SetBuilder>(limits, [&](SetBuilder& builder) {
      for (const std::string& member : members) builder.add(member);
    });
    CHECK(built.all() == written.all());
    CHECK(built.encoding() == written.encoding());
    CHECK(built.record().payload() == written.record().payload());
    CHECK(built.is_large() == written.is_large());
    CHECK(built.records_in(Space::kData) == written.records_in(Space::kData));
    if (built.is_large()) CHECK(built.record().collection()->count == members.size());
    // It is changed as the other is.
    for (OneSet* set : {&written, &built}) {
      CHECK(set->add("new"));
      CHECK_FALSE(set->add(members.front()));
      CHECK(set->remove(members.back()));
      set->commit();
    }
    CHECK(built.sorted() == written.sorted());
    for (OneSet* set : {&written, &built}) {
      set->remove_key();
      for (const auto& [key, value] : set->records_of(Space::kData)) {
        set->overlay().remove(Space::kData, key);
      }
      set->commit();
    }
  };
  compare({"b", "c", "a"});
  compare({"30", "-4", "7"});
  compare({"8", "7", "6", "5", "4", "3", "2", "1"});       // as many as an intset has
  compare({"1", "2", "3", "4", "5", "6", "7", "8", "9"});  // one more
  compare({"a", std::string(21, 'x')});                    // 24 bytes
  compare({"a", std::string(22, 'x')});                    // 25
  compare({"10", "-1", "1000000000000000000000"});         // large by a member that is no number
  compare({"90000000000", "80000000000", "70000000000"});  // large, and an intset
  compare(numbered_members(30));

  // Of nothing there is no key to be made.
  SetBuilder nothing(limits, [](Space, std::string_view, std::string_view) {});
  CHECK(nothing.finish().size == 0);
}

// A set as it is to those who use it, and the form that it must have.
class CheckedSet {
 public:
  CheckedSet(OneSet& set, std::mt19937_64& random) : set_(set), random_(random) {}

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
    } else if (kind < 10 && !state_.members.empty()) {
      set_.remove_key();
      state_ = {};
    } else {
      change();
    }
    check();
  }

 private:
  struct State {
    SetModel members;
    size_t bytes = 0;  // in the small form
    bool passed = false, large = false;
  };

  size_t below(size_t limit) { return random_() % limit; }

  std::string member() {
    if (below(state_.passed ? 2 : 30) != 0) {
      return std::to_string(static_cast<int64_t>(below(24)) - 12);
    }
    return std::string(below(20), static_cast<char>('a' + below(6)));
  }

  // Some changes by one writer.
  void change() {
    const size_t more = below(10) < 6 ? 8 : 2;  // of ten
    set_.change([&](SetWriter& writer) {
      for (size_t i = 0; i <= below(3); ++i) {
        below(10) < more ? add(writer, member()) : remove(writer, member());
        REQUIRE(writer.size() == state_.members.size());
      }
    });
    if (state_.members.empty()) state_ = {};
  }
  void add(SetWriter& writer, const std::string& member) {
    const bool is_new = state_.members.insert(member).second;
    REQUIRE(writer.add(member) == is_new);
    if (!is_new) return;
    state_.bytes += packed_bytes(member);
    state_.passed = state_.passed || !intset_number(member) ||
                    state_.members.size() > set_.limits().intset_entries_max;
    state_.large = state_.large || state_.bytes > set_.limits().inline_max_bytes;
  }
  void remove(SetWriter& writer, const std::string& member) {
    const bool was_there = state_.members.erase(member) != 0;
    REQUIRE(writer.remove(member) == was_there);
    if (was_there) state_.bytes -= packed_bytes(member);
  }

  void check() {
    REQUIRE(set_.exists() == !state_.members.empty());
    if (state_.members.empty()) return;
    REQUIRE(set_.encoding() == (state_.passed ? "hashtable" : "intset"));
    REQUIRE(set_.is_large() == state_.large);
    const Members all = set_.all();
    REQUIRE(set_.sorted() == state_.members);
    if (!state_.passed) REQUIRE(std::ranges::is_sorted(all, {}, intset_number));
    const std::string asked = member();
    REQUIRE(set_.contains(asked) == state_.members.contains(asked));
    const Record found = set_.record();
    std::string drawn;
    REQUIRE(SetReader(set_.overlay(), found).random(random_, &drawn));
    REQUIRE(state_.members.contains(drawn));
    REQUIRE(set_.keys().counts(0).keys == 1);
  }

  OneSet& set_;
  std::mt19937_64& random_;
  State state_;
};

TEST_CASE("random changes agree with a plain set", "[set]") {
  const uint64_t inline_max = GENERATE(uint64_t{50}, kAlwaysLarge, kAlwaysSmall);
  OneSet set(each_engine(), {.inline_max_bytes = inline_max, .intset_entries_max = 12});
  const uint64_t seed = std::random_device{}();
  INFO("inline_max " << inline_max << ", seed " << seed);
  std::mt19937_64 random(seed);
  CheckedSet checked(set, random);
  for (size_t step = 0; step < set.steps(2000); ++step) {
    INFO("step " << step);
    checked.step();
  }
}

}  // namespace
}  // namespace ingot::types
