// The set of dead ids, and what is planned from it.
#include "storage/dead_ids.h"

#include <catch2/catch.hpp>

#include "storage/rocksdb/reclaim_plan.h"

namespace ingot::storage {
namespace {

using Ids = std::vector<uint64_t>;

std::vector<std::pair<uint64_t, uint32_t>> all(const DeadIds& dead) {
  std::vector<std::pair<uint64_t, uint32_t>> found;
  dead.for_each([&](uint64_t id, uint32_t epoch) { found.emplace_back(id, epoch); });
  return found;
}

PlanTable table(uint32_t epoch, std::vector<IdSpan> spans) {
  return {.ids = {.epoch = epoch, .spans = std::move(spans)}, .every_id = true};
}

}  // namespace

TEST_CASE("dead ids keep the epoch in which they died") {
  DeadIds dead(1 << 20);
  CHECK(dead.newest() == 0);
  CHECK(dead.add(Ids{5, 6, 70'000}) == 3);
  CHECK(dead.add(Ids{1, 6, 7, 65'536}) == 4);
  CHECK(all(dead) == std::vector<std::pair<uint64_t, uint32_t>>{
                         {1, 2}, {5, 1}, {6, 1}, {7, 2}, {65'536, 2}, {70'000, 1}});
  CHECK(dead.newest() == 2);
  dead.remove(Ids{2, 5, 65'536, 70'000, 80'000});
  CHECK(all(dead) == std::vector<std::pair<uint64_t, uint32_t>>{{1, 2}, {6, 1}, {7, 2}});
  CHECK(dead.size() == 3);
}

TEST_CASE("runs of dead ids") {
  DeadIds dead(1 << 20);
  CHECK_FALSE(dead.next(0));
  dead.add(Ids{3, 4, 5, 9, 65'534, 65'535, 65'536, 65'537});
  const auto run = [&](uint64_t id) {
    const auto found = dead.next(id);
    return found ? std::pair(found->first, found->last) : std::pair<uint64_t, uint64_t>();
  };
  CHECK(run(0) == std::pair<uint64_t, uint64_t>(3, 5));
  CHECK(run(4).second == 5);
  CHECK(run(6) == std::pair<uint64_t, uint64_t>(9, 9));
  CHECK(run(10).first == 65'534);
  CHECK(run(65'538) == std::pair<uint64_t, uint64_t>());
  CHECK(dead.covers(3, 5));
  CHECK_FALSE(dead.covers(2, 4));
  CHECK_FALSE(dead.covers(5, 9));
  CHECK(dead.covers(65'534, 65'537));
}

TEST_CASE("the set of dead ids has a bound") {
  DeadIds dead(10'000);
  Ids ids;
  for (uint64_t page = 0; page < 100; ++page) ids.push_back(page << 16);
  const size_t taken = dead.add(ids);
  CHECK(taken > 10);
  CHECK(taken < 90);
  CHECK(dead.size() == taken);
  dead.remove(ids);
  CHECK(dead.add(std::span(ids).subspan(taken)) > 0);
}

TEST_CASE("an id is gone when no file that is older may hold it") {
  DeadIds dead(1 << 20);
  dead.add(Ids{10, 20});      // epoch 1
  dead.add(Ids{30, 40, 50});  // epoch 2
  const std::vector<PlanTable> tables = {
      table(2, {{.first = 1, .last = 60, .ids = 60, .bytes = 60}}),
      table(1, {{.first = 5, .last = 25, .ids = 3, .bytes = 30},
                {.first = 40, .last = 40, .ids = 1, .bytes = 10}}),
  };
  CHECK(plan_reclaim(dead, 2, tables).gone == Ids{10, 20, 30, 50});
  CHECK(plan_reclaim(dead, 1, tables).gone == Ids{10, 20});
  CHECK(plan_reclaim(dead, 0, tables).gone.empty());
  const ReclaimPlan plan = plan_reclaim(dead, 2, tables);
  CHECK(plan.dead_share[0] == Approx(0));
  CHECK(plan.dead_share[1] == Approx(0.25));
}

TEST_CASE("how much of a file is dead") {
  DeadIds dead(1 << 20);
  dead.add(Ids{2, 4, 6, 8, 10});
  SECTION("every number of its span is in it") {
    const std::vector<PlanTable> tables = {
        table(0, {{.first = 1, .last = 20, .ids = 20, .bytes = 2000}})};
    CHECK(plan_reclaim(dead, 1, tables).dead_share[0] == Approx(0.25));
  }
  SECTION("few are left in its span, and nowhere else") {
    const std::vector<PlanTable> tables = {
        table(0, {{.first = 0, .last = 99, .ids = 10, .bytes = 1000}})};
    CHECK(plan_reclaim(dead, 1, tables).dead_share[0] == Approx(0.5));
  }
  SECTION("a few of another level, between many") {
    const std::vector<PlanTable> tables = {
        table(0, {{.first = 0, .last = 99, .ids = 100, .bytes = 10'000}}),
        table(0, {{.first = 0, .last = 99, .ids = 2, .bytes = 200}})};
    const ReclaimPlan plan = plan_reclaim(dead, 1, tables);
    CHECK(plan.dead_share[0] == Approx(0.05));
    CHECK(plan.dead_share[1] < 0.1);
  }
  SECTION("one collection in many files") {
    const std::vector<PlanTable> tables(
        3, table(0, {{.first = 4, .last = 4, .ids = 1, .bytes = 1000}}));
    CHECK(plan_reclaim(dead, 1, tables).dead_share == std::vector<double>{1, 1, 1});
  }
}

}  // namespace ingot::storage
