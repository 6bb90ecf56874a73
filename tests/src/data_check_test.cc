// What the check finds in orders that somebody has damaged: the server itself would only answer
// wrongly.
#include "src/check/data_check.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "src/types/list_value.h"
#include "src/types/sorted_set_value.h"
#include "tests/src/typed_store.h"

namespace ingot::check {
namespace {

using types::TypedStore;

bool finds(TypedStore& data, const std::string& what) {
  bool found = false;
  DataCheck(data.engine(), [&](const std::string& problem) {
    INFO(problem);
    found = found || problem.find(what) != std::string::npos;
  }).run();
  return found;
}

// The records of kKey's order that stand on a level.
TypedStore::Records on_level(TypedStore& data, char level) {
  TypedStore::Records records = data.records_of(storage::Space::kOrder);
  std::erase_if(records, [level](const auto& record) { return record.first[8] != level; });
  REQUIRE(records.size() > 2);
  return records;
}
TypedStore::Records leaves(TypedStore& data) {
  return on_level(data, 1);
}

void swap_first_two(TypedStore& data) {
  const TypedStore::Records records = leaves(data);
  data.overlay().put(storage::Space::kOrder, records[0].first, records[1].second);
  data.overlay().put(storage::Space::kOrder, records[1].first, records[0].second);
  data.commit();
}

constexpr char kMisplaced[] = "stands in the wrong place";

}  // namespace

TEST_CASE("a sorted set's members in the wrong leaves are found", "[data_check]") {
  TypedStore data;
  data.change<types::SortedSetWriter>(types::SortedSetLimits{}, [](types::SortedSetWriter& set) {
    for (int i = 0; i < 40; ++i) set.put("member" + std::to_string(i), i);
  });
  data.commit();
  CHECK_FALSE(finds(data, kMisplaced));
  swap_first_two(data);
  CHECK(finds(data, kMisplaced));
}

TEST_CASE("a list's elements in the wrong leaves are found, and those that lack", "[data_check]") {
  TypedStore data;
  data.change<types::ListWriter>(uint64_t{0}, [](types::ListWriter& list) {
    for (int i = 0; i < 40; ++i) list.push(types::ListEnd::kRight, std::to_string(i));
    REQUIRE(list.insert(true, "20", "between"));
  });
  data.commit();
  CHECK_FALSE(finds(data, kMisplaced));
  CHECK_FALSE(finds(data, "its order has"));
  SECTION("in the wrong ones") {
    swap_first_two(data);
    CHECK(finds(data, kMisplaced));
    CHECK_FALSE(finds(data, "its order has"));
  }
  SECTION("lacking") {
    data.overlay().remove(storage::Space::kOrder, leaves(data)[1].first);
    data.commit();
    CHECK(finds(data, "its order has"));
  }
}

TEST_CASE("wrong counts of a list's order are found", "[data_check]") {
  TypedStore data;
  data.change<types::ListWriter>(uint64_t{0}, [](types::ListWriter& list) {
    for (int i = 0; i < 2000; ++i) list.push(types::ListEnd::kRight, std::to_string(i));
    REQUIRE(list.insert(true, "20", "between"));
  });
  data.commit();
  CHECK_FALSE(finds(data, "the counts of its order"));
  const TypedStore::Records nodes = on_level(data, 2);
  REQUIRE(nodes.front().second != nodes.back().second);
  data.overlay().put(storage::Space::kOrder, nodes.front().first, nodes.back().second);
  data.overlay().put(storage::Space::kOrder, nodes.back().first, nodes.front().second);
  data.commit();
  CHECK(finds(data, "the counts of its order"));
}

}  // namespace ingot::check
