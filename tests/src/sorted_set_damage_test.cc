// Sorted sets whose engine fails, and bytes that are none: an error, and no more.
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/types/member_table.h"
#include "tests/src/one_sorted_set.h"

namespace ingot::types {
namespace {

using storage::Space;
using storage::Status;

TEST_CASE("a sorted set whose engine fails is left as it was", "[sorted_set]") {
  const uint64_t inline_max = GENERATE(uint64_t{900}, kAlwaysLarge, kAlwaysSmall);
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
        for (int i = 0; i < 8; ++i) writer.put("new" + std::to_string(i), 2);
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

}  // namespace
}  // namespace ingot::types
