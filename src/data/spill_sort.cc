// Items in memory, the moment when they move into the engine, and the walk over either.
#include "src/data/spill_sort.h"

#include <algorithm>

#include "src/contract/thresholds.h"
#include "src/data/store.h"
#include "src/metrics/stats.h"
#include "storage/reader.h"

namespace ingot::data {

using storage::Space;
using storage::Status;

namespace {

constexpr size_t kKeptBytesMax = 1 << 20;      // by one reply
constexpr size_t kAllKeptBytesMax = 16 << 20;  // by all of them
constexpr size_t kItemBytes = 96;              // of two strings, about

size_t bytes_of(const std::pair<std::string, std::string>& item) {
  return item.first.size() + item.second.size() + kItemBytes;
}

// The engine keeps no empty value.
std::string record_of(std::string_view value) {
  return std::string(1, storage::kPlainElement).append(value);
}

}  // namespace

void SpillSort::add(std::string_view key, std::string_view value) {
  ++size_;
  if (last_wanted_ && key > *last_wanted_) return;
  if (spilled_) return spilled_->put(Space::kOrder, key, record_of(value));
  held_.emplace_back(key, value);
  held_bytes_ += bytes_of(held_.back());
  if (held_bytes_ > contract::kSortedInMemoryBytes) {
    drop_unwanted();
    if (held_bytes_ > contract::kSortedInMemoryBytes / 4 * 3) spill();
  }
}

void SpillSort::drop_unwanted() {
  if (held_.size() <= wanted_) return;
  const auto last = held_.begin() + static_cast<ptrdiff_t>(wanted_ - 1);
  std::ranges::nth_element(held_, last);
  last_wanted_ = last->first;
  held_.erase(last + 1, held_.end());
  held_bytes_ = 0;
  for (const Item& item : held_) held_bytes_ += bytes_of(item);
}

void SpillSort::spill() {
  spilled_ = std::make_unique<BuiltCollection>(services_);
  const auto held = std::exchange(held_, {});  // which gives its memory back
  for (const auto& [key, value] : held) spilled_->put(Space::kOrder, key, record_of(value));
}

Status SpillSort::finish() {
  if (!spilled_) {
    std::ranges::sort(held_);
    return {};
  }
  spilled_->flush();
  return spilled_->status();
}

SpillSort::~SpillSort() {
  services_.stats.kept_items_bytes.fetch_sub(kept_bytes_);
}

Status SpillSort::keep_for_reply() {
  if (spilled_) return {};
  const uint64_t all_bytes = services_.stats.kept_items_bytes.fetch_add(held_bytes_) + held_bytes_;
  kept_bytes_ = held_bytes_;
  if (held_bytes_ <= kKeptBytesMax && all_bytes <= kAllKeptBytesMax) return {};
  services_.stats.kept_items_bytes.fetch_sub(std::exchange(kept_bytes_, 0));
  spill();
  return finish();
}

Status SpillSort::walk(std::string_view from, const Each& each) const {
  if (!spilled_) {
    auto at = std::ranges::lower_bound(
        held_, from, {}, [](const auto& item) -> std::string_view { return item.first; });
    for (; at != held_.end() && each(at->first, at->second); ++at) {
    }
    return {};
  }
  const std::string begin = storage::collection_begin(spilled_->id());
  storage::EngineReader data(services_.store.engine(), nullptr, storage::Tier::kDisk,
                             storage::CacheUse::kPassBy);
  const auto at = data.cursor(Space::kOrder, begin, storage::collection_end(spilled_->id()));
  for (at->seek(begin + std::string(from)); at->valid(); at->next()) {
    if (!each(at->key().substr(begin.size()), at->value().substr(1))) break;
  }
  data.check(*at);
  return data.error();
}

}  // namespace ingot::data
