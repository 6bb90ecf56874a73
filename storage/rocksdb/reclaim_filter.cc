// How reclaim() drops dead key ranges without a tombstone: a compaction filter that skips them.
#include "storage/rocksdb/reclaim_filter.h"

#include <algorithm>

namespace ingot::storage {
namespace {

// Serves one compaction thread, which shows it keys in ascending order.
class ReclaimFilter : public rocksdb::CompactionFilter {
 public:
  explicit ReclaimFilter(SharedRanges dead) : dead_(std::move(dead)), next_(dead_->begin()) {}

  const char* Name() const override { return "ingot.reclaim"; }

  Decision FilterV2(int /*level*/, const rocksdb::Slice& key, ValueType /*type*/,
                    const rocksdb::Slice& /*value*/, std::string* /*new_value*/,
                    std::string* skip_until) const override {
    const std::string_view wanted = key.ToStringView();
    if (next_ == dead_->end() || wanted < next_->begin) return Decision::kKeep;
    next_ = std::partition_point(next_, dead_->end(),
                                 [&](const KeyRange& range) { return range.end <= wanted; });
    if (next_ == dead_->end() || wanted < next_->begin) return Decision::kKeep;
    *skip_until = next_->end;
    return Decision::kRemoveAndSkipUntil;
  }

 private:
  SharedRanges dead_;
  mutable std::vector<KeyRange>::const_iterator next_;  // first range that a later key may be in
};

class ReclaimFilterFactory : public rocksdb::CompactionFilterFactory {
 public:
  explicit ReclaimFilterFactory(const DeadRanges* dead) : dead_(dead) {}

  const char* Name() const override { return "ingot.reclaim"; }

  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& /*context*/) override {
    SharedRanges dead = dead_->current();
    if (dead == nullptr) return nullptr;
    return std::make_unique<ReclaimFilter>(std::move(dead));
  }

 private:
  const DeadRanges* dead_;
};

}  // namespace

void DeadRanges::set(std::span<const KeyRange> ranges) {
  auto copy = std::make_shared<const std::vector<KeyRange>>(ranges.begin(), ranges.end());
  std::lock_guard lock(mutex_);
  ranges_ = std::move(copy);
}

void DeadRanges::clear() {
  std::lock_guard lock(mutex_);
  ranges_ = nullptr;
}

SharedRanges DeadRanges::current() const {
  std::lock_guard lock(mutex_);
  return ranges_;
}

std::shared_ptr<rocksdb::CompactionFilterFactory> make_reclaim_filter_factory(
    const DeadRanges* dead) {
  return std::make_shared<ReclaimFilterFactory>(dead);
}

std::vector<KeyRange> merge_into_runs(std::span<const KeyRange> ranges,
                                      std::span<const FileSpan> files) {
  std::vector<KeyRange> runs;
  auto untouched = files.begin();  // first file behind those that the last run reaches into
  for (const KeyRange& range : ranges) {
    const auto first = std::partition_point(
        files.begin(), files.end(), [&](const FileSpan& f) { return f.largest < range.begin; });
    const auto end = std::partition_point(
        first, files.end(), [&](const FileSpan& f) { return f.smallest < range.end; });
    if (!runs.empty() && first <= untouched) {
      runs.back().end = range.end;
    } else {
      runs.push_back(range);
    }
    untouched = std::max(untouched, end);
  }
  return runs;
}

}  // namespace ingot::storage
