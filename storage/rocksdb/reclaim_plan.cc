// One walk over the dead ids and, beside it, over the spans of all files.
#include "storage/rocksdb/reclaim_plan.h"

#include <algorithm>

namespace ingot::storage {
namespace {

struct Active {
  const IdSpan* span;
  size_t table;
  double density;       // ids among the numbers of the span
  double dead_ids = 0;  // so far, by likelihood
};

double density(const IdSpan& span) {
  return static_cast<double>(span.ids) / (static_cast<double>(span.last - span.first) + 1);
}

}  // namespace

ReclaimPlan plan_reclaim(const DeadIds& dead, uint32_t flushed, std::span<const PlanTable> tables) {
  ReclaimPlan plan;
  std::vector<double> dead_bytes(tables.size());
  std::vector<Active> coming;
  for (size_t table = 0; table < tables.size(); ++table) {
    for (const IdSpan& span : tables[table].ids.spans) {
      coming.push_back({.span = &span, .table = table, .density = density(span)});
    }
  }
  std::ranges::sort(coming, {}, [](const Active& each) { return each.span->first; });

  std::vector<Active> active;
  const auto leave = [&](const Active& each) {
    const double share = std::min(1.0, each.dead_ids / static_cast<double>(each.span->ids));
    dead_bytes[each.table] += share * static_cast<double>(each.span->bytes);
  };
  auto next = coming.begin();
  dead.for_each([&](uint64_t id, uint32_t epoch) {
    std::erase_if(active, [&](const Active& each) {
      if (each.span->last >= id) return false;
      leave(each);
      return true;
    });
    for (; next != coming.end() && next->span->first <= id; ++next) {
      if (next->span->last >= id) active.push_back(*next);
    }
    double population = 0;  // ids among the numbers around here, in all files together
    for (const Active& each : active) {
      if (tables[each.table].every_id) population += each.density;
    }
    bool gone = epoch <= flushed;
    for (Active& each : active) {
      if (tables[each.table].ids.epoch >= epoch) continue;
      gone = false;
      const bool certain = each.span->first == id || each.span->last == id;
      each.dead_ids += certain ? 1 : each.density / std::clamp(population, each.density, 1.0);
    }
    if (gone) plan.gone.push_back(id);
  });
  for (const Active& each : active) leave(each);

  for (size_t table = 0; table < tables.size(); ++table) {
    double bytes = 0;
    for (const IdSpan& span : tables[table].ids.spans) bytes += static_cast<double>(span.bytes);
    plan.dead_share.push_back(bytes > 0 ? dead_bytes[table] / bytes : 0);
  }
  return plan;
}

}  // namespace ingot::storage
