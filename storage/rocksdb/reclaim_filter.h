// How reclaim() drops dead key ranges without a tombstone: a compaction filter that skips them.
//
// DeadRanges is the set for one space; the engine's reclaim() fills and empties it, compactions
// take an immutable copy when they start. Thread safe.
#pragma once

#include <rocksdb/compaction_filter.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "storage/engine.h"

namespace ingot::storage {

using SharedRanges = std::shared_ptr<const std::vector<KeyRange>>;

class DeadRanges {
 public:
  void set(std::span<const KeyRange> ranges);  // sorted, disjoint
  void clear();
  SharedRanges current() const;  // null when there are none

 private:
  mutable std::mutex mutex_;
  SharedRanges ranges_;  // guarded by mutex_; what it points at never changes
};

// `dead` must outlive the factory.
std::shared_ptr<rocksdb::CompactionFilterFactory> make_reclaim_filter_factory(
    const DeadRanges* dead);

// The keys of one table file, both ends inclusive.
struct FileSpan {
  std::string smallest;
  std::string largest;
};

// Joins sorted disjoint `ranges` into the fewest ranges to compact such that no file of `files`
// (a level's, in key order) that holds none of them lies inside one. A thousand tiny dead
// collections in one file are one compaction of that file, not a thousand.
std::vector<KeyRange> merge_into_runs(std::span<const KeyRange> ranges,
                                      std::span<const FileSpan> files);

}  // namespace ingot::storage
