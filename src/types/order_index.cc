// Loading count levels, changing them with their unit, and restoring them when it is undone.
#include "src/types/order_index.h"
#include "storage/check.h"

#include <algorithm>
#include <utility>

namespace ingot::types {

namespace {

// A node is some 100 bytes and stands for five hundred members and more. An order of more nodes is
// read anew for each group.
constexpr size_t kNodesMax = 80'000;
constexpr size_t kLastFilledMax = 1000;  // of orders that are emptied from their ends

}  // namespace

size_t OrderIndex::Hash::operator()(
    const std::pair<storage::CollectionId, int>& key) const noexcept {
  return (key.first * 4 + static_cast<uint64_t>(key.second)) * 0x9E3779B97F4A7C15ull;
}

OrderIndex::Nodes::const_iterator OrderIndex::find(const Nodes& nodes, std::string_view bound) {
  return std::ranges::lower_bound(
      nodes, bound, {}, [](const OrderNode& node) -> std::string_view { return node.bound; });
}

const OrderIndex::Nodes* OrderIndex::nodes(storage::CollectionId id, int level) const {
  const auto found = levels_.find({id, level});
  return found == levels_.end() ? nullptr : &found->second.nodes;
}

// The level's nodes, which are about to change. A level that is not there is made.
OrderIndex::Nodes& OrderIndex::changed(const Key& key) {
  const auto [at, is_new] = levels_.try_emplace(key);
  Level& level = at->second;
  if (is_new) {
    level.place = by_change_.insert(by_change_.end(), key);
  } else {
    by_change_.splice(by_change_.end(), by_change_, level.place);
  }
  return level.nodes;
}

void OrderIndex::forget(const Key& key) {
  const auto at = levels_.find(key);
  if (at == levels_.end()) return;
  nodes_ -= at->second.nodes.size();
  by_change_.erase(at->second.place);
  levels_.erase(at);
}

void OrderIndex::load(storage::CollectionId id, int level, Nodes nodes) {
  undo_.push_back({.id = id, .level = level, .bound = {}, .count = {}});
  load_committed(id, level, std::move(nodes));
}

void OrderIndex::load_committed(storage::CollectionId id, int level, Nodes nodes) {
  Nodes& loaded = changed({id, level});
  nodes_ += nodes.size() - loaded.size();
  loaded = std::move(nodes);
}

void OrderIndex::set(storage::CollectionId id, int level, const OrderNode& node) {
  Nodes& nodes = changed({id, level});
  const auto at = nodes.begin() + (find(nodes, node.bound) - nodes.cbegin());
  const bool exists = at != nodes.end() && at->bound == node.bound;
  undo_.push_back({.id = id,
                   .level = level,
                   .bound = node.bound,
                   .count = exists ? std::optional(at->count) : std::nullopt});
  if (exists) {
    at->count = node.count;
  } else {
    nodes.insert(at, node);
    ++nodes_;
  }
}

void OrderIndex::erase(storage::CollectionId id, int level, std::string_view bound) {
  Nodes& nodes = changed({id, level});
  const auto at = find(nodes, bound);
  if (at == nodes.end() || at->bound != bound) return;
  undo_.push_back({.id = id, .level = level, .bound = std::string(bound), .count = at->count});
  nodes.erase(at);
  --nodes_;
}

void OrderIndex::erase_leaf(storage::CollectionId id, std::string_view bound) {
  leaves_.forget(id, bound);
  undo_.push_back(
      {.id = id, .level = 0, .bound = std::string(bound), .count = {}, .is_leaf = true});
}

void OrderIndex::restore(const Undo& undo) {
  if (undo.is_leaf) {
    leaves_.part(undo.id, undo.bound);
  } else if (undo.bound.empty()) {
    forget({undo.id, undo.level});
  } else if (undo.count) {
    set(undo.id, undo.level, {.bound = undo.bound, .count = *undo.count});
  } else {
    erase(undo.id, undo.level, undo.bound);
  }
}

std::string_view OrderIndex::last_filled(storage::CollectionId id) const {
  const auto found = last_filled_.find(id);
  return found == last_filled_.end() ? std::string_view() : found->second;
}

void OrderIndex::note_last_filled(storage::CollectionId id, std::string_view bound) {
  if (bound.empty()) {
    last_filled_.erase(id);
    return;
  }
  // Many of these orders have gone.
  if (last_filled_.size() >= kLastFilledMax) last_filled_.clear();
  last_filled_[id] = bound;
}

void OrderIndex::rollback(size_t savepoint) {
  last_filled_.clear();
  INGOT_CHECK(savepoint <= undo_.size());
  while (undo_.size() > savepoint) {
    const size_t size = undo_.size();
    restore(Undo(undo_.back()));
    undo_.resize(size - 1, Undo{});
  }
}

void OrderIndex::end_group() {
  undo_.clear();
  while (nodes_ > kNodesMax) forget(Key(by_change_.front()));
}

}  // namespace ingot::types
