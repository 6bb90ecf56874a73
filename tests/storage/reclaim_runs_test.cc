// How dead ranges are joined into the ranges that are compacted.
#include <catch2/catch.hpp>

#include "storage/rocksdb/reclaim_filter.h"

namespace ingot::storage {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs runs_of(const std::vector<KeyRange>& ranges, const std::vector<FileSpan>& files) {
  Pairs pairs;
  for (const KeyRange& run : merge_into_runs(ranges, files)) pairs.emplace_back(run.begin, run.end);
  return pairs;
}

}  // namespace

TEST_CASE("dead ranges join into runs") {
  const std::vector<FileSpan> files = {{"b", "d"}, {"f", "h"}, {"j", "l"}, {"n", "p"}};

  SECTION("no files: all keys are in memory, and one run flushes them") {
    CHECK(runs_of({{"a", "b"}, {"x", "y"}}, {}) == Pairs{{"a", "y"}});
  }
  SECTION("in one file") {
    CHECK(runs_of({{"f", "f1"}, {"g", "g1"}}, files) == Pairs{{"f", "g1"}});
  }
  SECTION("in neighbouring files") {
    CHECK(runs_of({{"c", "d"}, {"g", "g1"}}, files) == Pairs{{"c", "g1"}});
  }
  SECTION("a file that holds no dead key is left alone") {
    CHECK(runs_of({{"c", "d"}, {"k", "k1"}}, files) == Pairs{{"c", "d"}, {"k", "k1"}});
  }
  SECTION("ranges between files") {
    CHECK(runs_of({{"a", "a1"}, {"a2", "a3"}, {"e", "e1"}, {"i", "i1"}}, files) ==
          Pairs{{"a", "a3"}, {"e", "e1"}, {"i", "i1"}});
  }
  SECTION("the end of a range is not in it") {
    CHECK(runs_of({{"c", "f"}, {"j", "k"}}, files) == Pairs{{"c", "f"}, {"j", "k"}});
  }
  SECTION("a range over many files") {
    CHECK(runs_of({{"a", "k"}, {"n", "o"}}, files) == Pairs{{"a", "o"}});
  }
}

}  // namespace ingot::storage
