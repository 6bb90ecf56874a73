// Placing changed leaves among the committed ones, and sums over both.
#include "src/types/pending_counts.h"

#include <algorithm>
#include <utility>

#include "src/types/counted_order.h"
#include "storage/overlay.h"

namespace ingot::types {

using storage::Space;

PendingCounts::PendingCounts(storage::Reader& data, storage::CollectionId id, uint32_t revision)
    : data_(data), counts_(data.order_counts()), id_(id), revision_(revision) {
  storage::Overlay* const overlay = data.overlay();
  if (overlay == nullptr) {
    changed_.emplace();
  } else if (const auto committed = overlay->committed_revision(id)) {
    revision_ = *committed;
    is_told_ = true;
  }
}

// Each costs a look-up: a walk over the records takes as long as some hundreds of them.
bool PendingCounts::load(Counts::Answer* answer) {
  constexpr size_t kChangedMax = 256;
  constexpr size_t kChangedMany = 32;
  if (counts_ == nullptr || data_.failed()) known_ = false;
  if (changed_ || !known_) return known_;
  std::vector<Changed> changed;
  const auto [lower, upper] = leaves_of_order(id_);
  data_.overlay()->each_change(
      Space::kOrder, lower, upper, [&](std::string_view key, const std::string_view* record) {
        const auto change = order_change(key, record);
        if (change)
          changed.push_back(
              {.bound = std::string(change->change.bound), .count = change->change.count});
        known_ = change && changed.size() <= kChangedMax && is_told_;
        return known_;
      });
  if (changed.size() > kChangedMany) data_.overlay()->want_commit();
  for (Changed& each : changed) {
    if (!known_) return false;
    Counts::Answer its = counts_->leaf_of(id_, revision_, each.bound);
    if (!its.leaf) {
      *answer = std::move(its);
      return false;
    }
    each.before = its.leaf->before;
    if (its.leaf->bound == each.bound) each.count_before = its.leaf->count;
  }
  if (known_) changed_ = std::move(changed);
  return known_;
}

const PendingCounts::Changed* PendingCounts::changed(std::string_view bound) const {
  const auto found = std::ranges::lower_bound(*changed_, bound, {}, &Changed::bound);
  return found != changed_->end() && found->bound == bound ? &*found : nullptr;
}

PendingCounts::Counts::Answer PendingCounts::leaf_of(std::string_view bound) {
  Counts::Answer answer;
  if (!load(&answer)) return answer;
  answer = counts_->leaf_of(id_, revision_, bound);
  if (!answer.leaf || changed_->empty()) return answer;
  Counts::Leaf& leaf = *answer.leaf;
  uint64_t before = leaf.before;
  auto next = changed_->begin();
  for (; next != changed_->end() && next->bound < bound; ++next) {
    before += next->count.value_or(0) - next->count_before;
  }
  while (next != changed_->end() && !next->count) ++next;
  for (const Changed* its = changed(leaf.bound); its != nullptr && !its->count;
       its = changed(leaf.bound)) {
    answer = counts_->leaf_of(id_, revision_, leaf.bound + '\0');
    if (!answer.leaf) return answer;
  }
  if (next != changed_->end() && next->bound <= leaf.bound) {
    leaf = {.bound = next->bound, .before = 0, .count = *next->count};
  }
  leaf.before = before;
  return answer;
}

PendingCounts::Counts::Answer PendingCounts::leaf_at(uint64_t rank) {
  Counts::Answer answer;
  if (!load(&answer)) return answer;
  uint64_t more = 0;  // than in the committed leaves so far; modulo 2^64, as there may be less
  for (const Changed& each : *changed_) {
    const uint64_t before = each.before + more;
    if (rank < before) break;
    const uint64_t count = each.count.value_or(0);
    if (rank < before + count) {
      answer.leaf = Counts::Leaf{.bound = each.bound, .before = before, .count = count};
      return answer;
    }
    more += count - each.count_before;
  }
  answer = counts_->leaf_at(id_, revision_, rank - more);
  if (answer.leaf) answer.leaf->before += more;
  return answer;
}

void PendingCounts::put(int level, std::vector<Counts::Node> nodes) {
  counts_->put(id_, revision_, level, std::move(nodes));
}

void PendingCounts::forget() {
  counts_->forget(id_);
}

}  // namespace ingot::types
