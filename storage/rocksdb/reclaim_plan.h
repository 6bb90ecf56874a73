// Which dead ids are gone, and how much of each table file is dead: from what the files note about
// themselves alone. A pure function.
#pragma once

#include <span>
#include <vector>

#include "storage/dead_ids.h"
#include "storage/rocksdb/reclaim_filter.h"

namespace ingot::storage {

struct PlanTable {
  TableIds ids;
  // Every id has keys in this space; in another it may have none.
  bool every_id = true;
};

struct ReclaimPlan {
  std::vector<uint64_t> gone;      // ascending: in no file, and not in memory
  std::vector<double> dead_share;  // of each table, as it is guessed, 0 to 1
};

// Ids of epochs up to `flushed` have nothing in memtables. An id lies in a file's span for certain
// only at its ends; else as likely as ids of the span are among all that the files have there.
ReclaimPlan plan_reclaim(const DeadIds& dead, uint32_t flushed, std::span<const PlanTable> tables);

}  // namespace ingot::storage
