// See spill_sort.h.
#include "src/types/spill_sort.h"

#include <algorithm>

#include "src/exec/store.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

namespace {

constexpr size_t kHeldBytesMax = 4 << 20;
constexpr size_t kItemBytes = 96;  // of two strings, about

// The engine keeps no empty value.
std::string record_of(std::string_view value) {
  return std::string(1, storage::kPlainElement).append(value);
}

}  // namespace

std::string_view SpillSort::key_of(std::string_view record_key) {
  return record_key.substr(sizeof(storage::CollectionId));
}

std::string_view SpillSort::value_of(std::string_view record) {
  return record.substr(1);
}

void SpillSort::add(std::string_view key, std::string_view value) {
  ++size_;
  if (spilled_) return spilled_->put(Space::kOrder, key, record_of(value));
  held_.emplace_back(key, value);
  held_bytes_ += key.size() + value.size() + kItemBytes;
  if (held_bytes_ <= kHeldBytesMax) return;
  spilled_ = std::make_unique<FreshCollection>(services_);
  for (const auto& [held_key, held_value] : held_) {
    spilled_->put(Space::kOrder, held_key, record_of(held_value));
  }
  held_ = {};
}

Status SpillSort::finish() {
  if (!spilled_) {
    std::ranges::sort(held_);
    return {};
  }
  spilled_->flush();
  return spilled_->status();
}

RecordRange SpillSort::range() const {
  return {.space = Space::kOrder,
          .lower = storage::collection_begin(spilled_->id()),
          .upper = storage::collection_end(spilled_->id())};
}

Status SpillSort::walk(const Each& each) const {
  if (!spilled_) {
    for (const auto& [key, value] : held_) {
      if (!each(key, value)) break;
    }
    return {};
  }
  const RecordRange all = range();
  storage::EngineReader data(services_.store.engine(), nullptr, storage::Tier::kDisk,
                             storage::CacheUse::kPassBy);
  const auto at = data.cursor(all.space, all.lower, all.upper);
  for (at->seek(all.lower); at->valid(); at->next()) {
    if (!each(key_of(at->key()), value_of(at->value()))) break;
  }
  data.check(*at);
  return data.error();
}

}  // namespace ingot::types
