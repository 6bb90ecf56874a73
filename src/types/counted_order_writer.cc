// Changing an order: items go into and out of the record of a leaf, whose bounds and counts follow.
#include "src/types/counted_order.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"
#include "storage/no_wait_reads.h"

namespace ingot::types {

using storage::Lookup;
using storage::Space;
using storage::Status;

namespace {

constexpr size_t kCountBytes = sizeof(uint32_t);  // of a leaf's record, before its items

size_t items_in(std::string_view record) {
  return storage::read_le32(record);
}

void set_items(std::string* record, size_t items) {
  for (size_t i = 0; i < kCountBytes; ++i) (*record)[i] = static_cast<char>(items >> 8 * i);
}

std::optional<CountedOrderWriter::EndItem> last_item(std::string_view record) {
  std::string_view last;
  bool is_marked = false;
  CountedOrder::read_leaf(record, [&](std::string_view item, bool marked) {
    last = item;
    is_marked = marked;
    return true;
  });
  if (last.empty()) return std::nullopt;
  return CountedOrderWriter::EndItem{.item = std::string(last), .marked = is_marked};
}

// Where an item stands in a leaf's record, its mark included; where it would, when it does not.
struct Place {
  size_t begin = 0;
  size_t end = 0;
};

std::optional<Place> find_place(std::string_view record, std::string_view item) {
  if (record.size() < kCountBytes) return std::nullopt;
  PackedReader reader(record.substr(kCountBytes));
  size_t begin = kCountBytes;
  for (std::string_view its; reader.next(&its);) {
    if (its.empty()) continue;  // the mark of the next
    const size_t end = kCountBytes + reader.position();
    if (its >= item) return Place{.begin = begin, .end = its == item ? end : begin};
    begin = end;
  }
  return reader.broken() ? std::nullopt : std::optional(Place{.begin = begin, .end = begin});
}

}  // namespace

const OrderIndex::Nodes& CountedOrderWriter::nodes(Level level) {
  if (index_.nodes(id_, level) == nullptr) {
    OrderIndex::Nodes all;
    if (!index_.is_left_unread()) {
      for (cursor().seek(key(level, {})); on_level(level); cursor_->next()) all.push_back(node());
      data_.check(*cursor_);
    }
    if (data_.missed()) index_.note_missed();
    const auto end = key(static_cast<Level>(level + 1), {});
    if (data_.failed() || overlay_.changes(Space::kOrder, key(level, {}), end)) {
      index_.load(id_, level, std::move(all));
    } else {
      index_.load_committed(id_, level, std::move(all));
    }
  }
  return *index_.nodes(id_, level);
}

std::optional<CountedOrder::Node> CountedOrderWriter::find_node(Level level,
                                                                std::string_view item) {
  const OrderIndex::Nodes& all = nodes(level);
  const auto found = OrderIndex::find(all, bound_of(item));
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void CountedOrderWriter::put(Level level, const Node& node) {
  INGOT_CHECK(!node.bound.empty());
  overlay_.put(Space::kOrder, key(level, node.bound), encode(node));
  index_.set(id_, level, node);
}

void CountedOrderWriter::put(const Leaf& leaf) {
  overlay_.put(Space::kOrder, key(kLeaf, leaf.bound), encode(leaf));
}

void CountedOrderWriter::erase(Level level, std::string_view bound) {
  overlay_.remove(Space::kOrder, key(level, bound));
  level == kLeaf ? index_.erase_leaf(id_, bound) : index_.erase(id_, level, bound);
}

// A leaf that is known is looked up by its bound. It is the item's when its own first item is not
// behind that, or the bound before it is its neighbour: then no bound lies between.
std::optional<CountedOrderWriter::StoredLeaf> CountedOrderWriter::find_leaf(std::string_view item) {
  std::string before_first;  // the known leaf that it stands before the first item of
  if (auto known = index_.leaves().at(id_, bound_of(item))) {
    StoredLeaf leaf{.bound = std::move(known->bound), .record = {}};
    const Lookup found = overlay_.probe(Space::kOrder, key(kLeaf, leaf.bound), &leaf.record);
    if (found == Lookup::kFound) {
      if (known->joined) return leaf;
      bool is_before = true;
      read_leaf(leaf.record, [&](std::string_view first, bool) {
        is_before = item < first;
        return false;
      });
      if (!is_before) return leaf;
      before_first = leaf.bound;
    }
    if (found == Lookup::kAbsent) index_.leaves().forget(id_, leaf.bound);
  }
  if (!seek_leaf(item)) return std::nullopt;
  (void)count();  // looks at the record
  StoredLeaf leaf{.bound = std::string(bound()), .record = std::string(cursor_->value())};
  if (data_.failed()) return leaf;
  index_.leaves().note(id_, leaf.bound);
  // One that was not known has waited for nobody. Before the lowest item there may be many records
  // that went.
  if (before_first == leaf.bound && item > low_) join(leaf.bound);
  return leaf;
}

// The leaf behind the one with this bound; nothing when that is the last.
std::optional<CountedOrderWriter::StoredLeaf> CountedOrderWriter::find_leaf_behind(
    std::string_view bound) {
  auto known = index_.leaves().at(id_, std::string(bound) + '\0');
  if (known && known->joined) {
    StoredLeaf leaf{.bound = std::move(known->bound), .record = {}};
    const Lookup found = overlay_.probe(Space::kOrder, key(kLeaf, leaf.bound), &leaf.record);
    if (found == Lookup::kFound) return leaf;
  }
  seek_behind(kLeaf, bound);
  data_.check(*cursor_);
  if (!on_level(kLeaf)) return std::nullopt;
  (void)count();  // looks at the record
  return StoredLeaf{.bound = std::string(this->bound()), .record = std::string(cursor_->value())};
}

// The leaf that the cursor stands on need not be sought again for what comes before its items.
void CountedOrderWriter::join(std::string_view bound) {
  const storage::NoWaitReads::Refusal refusal;
  cursor_->prev();
  if (on_level(kLeaf)) {
    index_.leaves().note_neighbours(id_, this->bound(), bound);
  } else if (cursor_->outcome() == Lookup::kFound) {
    index_.leaves().note_neighbours(id_, {}, bound);
  } else {
    cursor_.reset();  // only this could not be read, and nobody has asked for it
  }
}

std::optional<CountedOrderWriter::EndItem> CountedOrderWriter::lowest() {
  const auto leaf = find_leaf(low_);
  std::optional<EndItem> found;
  if (!leaf) return found;
  read_leaf(leaf->record, [&](std::string_view item, bool marked) {
    if (item < low_) return true;
    found = EndItem{.item = std::string(item), .marked = marked};
    return false;
  });
  return found;
}

std::optional<CountedOrderWriter::EndItem> CountedOrderWriter::highest() {
  std::string record;
  for (const std::string_view bound : {kLastBound, index_.last_filled(id_)}) {
    if (bound.empty() || !overlay_.get(Space::kOrder, key(kLeaf, bound), &record)) continue;
    if (auto found = last_item(record)) return found;
  }
  return !data_.failed() && seek_last() ? last_item(cursor_->value()) : std::nullopt;
}

// Moves the cursor to the last leaf that has items; false when there is none. From where the last
// but one was known: items that are removed from the end leave records that went behind them.
bool CountedOrderWriter::seek_last() {
  cursor().seek(key(kLeaf, kLastBound));
  data_.check(*cursor_);
  if (!on_level(kLeaf)) return false;
  if (count() > 0) return true;
  const std::string known(index_.last_filled(id_));
  known.empty() ? cursor_->prev() : cursor_->seek_for_prev(key(kLeaf, known));
  while (on_level(kLeaf) && count() == 0) cursor_->prev();
  data_.check(*cursor_);
  if (!on_level(kLeaf) || data_.failed()) return false;
  index_.note_last_filled(id_, bound());
  return true;
}

void CountedOrderWriter::walk_from_last(const Each& each) {
  if (seek_last()) walk_here(count() - 1, /*reverse=*/true, each);
}

CountedOrder::Leaf CountedOrderWriter::decoded(const StoredLeaf& stored) {
  Leaf leaf{.bound = stored.bound, .items = {}};
  read_leaf(stored.record, [&](std::string_view item, bool marked) {
    leaf.items.push_back({.bytes = std::string(item), .marked = marked});
    return true;
  });
  return leaf;
}

void CountedOrderWriter::put(const StoredLeaf& leaf) {
  overlay_.put(Space::kOrder, key(kLeaf, leaf.bound), leaf.record);
}

void CountedOrderWriter::insert(std::string_view item, bool marked) {
  StoredLeaf at = find_leaf(item).value_or(
      StoredLeaf{.bound = std::string(kLastBound), .record = encode(Leaf{})});
  const auto place = find_place(at.record, item);
  if (!place) return latch_unreadable();
  std::string packed;
  if (marked) append_packed(&packed, {});
  append_packed(&packed, item);
  at.record.insert(place->begin, packed);
  fill(at.bound);
  const size_t items = items_in(at.record) + 1;
  set_items(&at.record, items);
  if (items > kLeafItems || (items > 1 && at.record.size() - kCountBytes > kLeafBytes)) {
    split(decoded(at));
  } else {
    put(at);
  }
}

// Items come into the leaf with that bound.
void CountedOrderWriter::fill(std::string_view bound) {
  const std::string_view last = index_.last_filled(id_);
  if (!last.empty() && bound > last && bound != kLastBound) index_.note_last_filled(id_, bound);
}

std::optional<CountedOrderWriter::StoredLeaf> CountedOrderWriter::take(std::string_view item) {
  auto at = find_leaf(item);
  const auto place = at ? find_place(at->record, item) : Place{};
  if (!place) {
    latch_unreadable();
    return std::nullopt;
  }
  if (place->begin == place->end || items_in(at->record) == 0) {
    data_.latch_error(Status(Status::Code::kCorruption, "an order lacks an item"));
    return std::nullopt;
  }
  at->record.erase(place->begin, place->end - place->begin);
  set_items(&at->record, items_in(at->record) - 1);
  PackedReader behind(std::string_view(at->record).substr(place->begin));
  for (std::string_view next; behind.next(&next);) {
    if (next.empty()) continue;  // a mark
    at->item_behind = next;
    break;
  }
  put(*at);
  return at;
}

void CountedOrderWriter::change(Level level, std::string_view item, int64_t by) {
  Node node = find_node(level, item).value_or(Node{.bound = std::string(kLastBound)});
  if (by < 0 && node.count < static_cast<uint64_t>(-by)) {
    return data_.latch_error(Status(Status::Code::kCorruption, "an order count is too low"));
  }
  node.count += static_cast<uint64_t>(by);
  put(level, node);
  if (node.count > kNodeMax[level]) split(level, node);
}

void CountedOrderWriter::add(std::string_view item, bool marked) {
  insert(item, marked);
  // From below, because a split counts what is there.
  for (const Level level : {kMiddle, kTop}) change(level, item, 1);
}

std::optional<std::string> CountedOrderWriter::remove(std::string_view item) {
  const auto at = take(item);
  if (!at) return std::nullopt;
  for (const Level level : {kMiddle, kTop}) change(level, item, -1);
  if (items_in(at->record) < kLeafItemsMin) shrink(decoded(*at), item);
  return at->item_behind;
}

void CountedOrderWriter::remove_between(std::string_view first, std::string_view last,
                                        const std::function<void(std::string_view item)>& each) {
  std::string from(first);
  while (!data_.failed() && seek_leaf(from)) {
    Leaf at = leaf();
    const auto begin = std::ranges::lower_bound(at.items, from, {}, &Item::bytes);
    const auto end = std::ranges::upper_bound(at.items, last, {}, &Item::bytes);
    if (end != at.items.end() && begin >= end) return;  // the next item stays
    const bool is_done = end != at.items.end() || at.bound == kLastBound;
    // Behind this leaf, which may go.
    std::string next = is_done ? std::string() : at.bound.substr(1) + '\0';
    const auto count = static_cast<int64_t>(std::distance(begin, end));
    if (count > 0) {
      const std::string item = begin->bytes;
      for (auto gone = begin; gone != end; ++gone) each(gone->bytes);
      at.items.erase(begin, end);
      put(at);
      for (const Level level : {kMiddle, kTop}) change(level, item, -count);
      if (at.items.size() < kLeafItemsMin) shrink(at, item);
    }
    if (is_done || next > last) return;
    from = std::move(next);
  }
}

void CountedOrderWriter::move(std::string_view from, std::string_view to, bool marked) {
  const auto differs = [&](Level level) {
    const OrderIndex::Nodes& all = nodes(level);
    return OrderIndex::find(all, bound_of(from)) != OrderIndex::find(all, bound_of(to));
  };
  std::vector<Level> changed;
  for (const Level level : {kMiddle, kTop}) {
    if (differs(level)) changed.push_back(level);
  }
  const auto at = take(from);
  if (!at) return;
  for (const Level level : changed) change(level, from, -1);
  if (items_in(at->record) < kLeafItemsMin) shrink(decoded(*at), from);
  insert(to, marked);
  for (const Level level : changed) change(level, to, 1);
}

void CountedOrderWriter::split(Leaf at) {
  INGOT_CHECK(at.items.size() > 1);  // neither half is empty
  const auto half = at.items.begin() + static_cast<ptrdiff_t>(at.items.size() / 2);
  Leaf left{.bound = bound_between(std::prev(half)->bytes, half->bytes),
            .items = {at.items.begin(), half}};
  at.items.erase(at.items.begin(), half);
  // What follows on a failure may be split off anything.
  if (!data_.failed()) index_.leaves().note_split(id_, left.bound, at.bound);
  put(left);
  put(at);
  fill(left.bound);
}

// At a bound of the level below, near the middle.
void CountedOrderWriter::split(Level level, const Node& node) {
  const OrderIndex::Nodes& all = nodes(level);
  const auto at = OrderIndex::find(all, node.bound);
  const std::string behind = at == all.begin() ? std::string() : std::prev(at)->bound;
  Node left;
  const auto reaches_half = [&](const Node& below) {
    left.bound = below.bound;
    left.count += below.count;
    return left.count >= node.count / 2;
  };
  if (level == kTop) {
    const OrderIndex::Nodes& middle = nodes(kMiddle);
    const auto first = OrderIndex::find(middle, behind + '\0');
    (void)std::find_if(first, middle.end(), reaches_half);
  } else {
    for (seek_behind(kLeaf, behind); on_level(kLeaf) && !reaches_half(this->node());) {
      cursor_->next();
    }
    data_.check(*cursor_);
  }
  if (left.bound.empty() || left.bound >= node.bound || left.count >= node.count) return;
  put(level, left);
  put(level, {.bound = node.bound, .count = node.count - left.count});
}

// A record whose bound is one of the level above goes only with that one; the last ones stay.
void CountedOrderWriter::shrink(const Leaf& at, std::string_view item) {
  const Node middle = find_node(kMiddle, item).value_or(Node{.bound = std::string(kLastBound)});
  const Node top = find_node(kTop, item).value_or(Node{.bound = std::string(kLastBound)});
  if (middle.count == 0 && middle.bound != top.bound) {
    for (const Level level : {kMiddle, kLeaf}) erase(level, middle.bound);
  }
  if (top.count == 0 && !top.is_last()) {
    for (const Level level : kDown) erase(level, top.bound);
  }
  if (at.bound == middle.bound) return;
  if (at.items.empty()) return erase(kLeaf, at.bound);
  const auto behind = find_leaf_behind(at.bound);
  if (!behind) return;
  Leaf next = decoded(*behind);
  if (at.items.size() + next.items.size() > kLeafItemsJoined ||
      at.bytes() + next.bytes() > kLeafBytesJoined) {
    return;
  }
  next.items.insert(next.items.begin(), at.items.begin(), at.items.end());
  erase(kLeaf, at.bound);
  put(next);
  fill(next.bound);
}

}  // namespace ingot::types
