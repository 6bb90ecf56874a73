// The leaves and the count levels of an order: finding by rank or item, and splitting and joining.
#include "src/types/counted_order.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

namespace {

// A look-up walks records of each level: with a million items some 15, 25 and 25. A leaf is
// rewritten whole with each change in it, so it is small.
constexpr size_t kLeafItems = 32;
constexpr size_t kLeafBytes = 2048;
constexpr uint64_t kNodeMax[] = {0, 0, kLeafItems * 48, kLeafItems * 48 * 48};  // by level
// What is built leaves room.
constexpr size_t kLeafItemsBuilt = kLeafItems * 3 / 4;
constexpr size_t kLeafBytesBuilt = kLeafBytes * 3 / 4;
// Leaves seldom join, so that few split again and few records come and go.
constexpr size_t kLeafItemsMin = kLeafItems / 8;
constexpr size_t kLeafItemsJoined = kLeafItems / 2;
constexpr size_t kLeafBytesJoined = kLeafBytes / 2;

constexpr size_t kKeyPrefix = sizeof(storage::CollectionId) + 1;
constexpr std::string_view kLastBound("\1", 1);

std::string bound_of(std::string_view item) {
  std::string bound(1, '\0');
  return bound.append(item);
}

}  // namespace

size_t CountedOrderForm::Leaf::bytes() const {
  size_t bytes = 0;
  for (const Item& item : items) bytes += packed_bytes(item.bytes) + item.marked;
  return bytes;
}

std::string CountedOrderForm::element(Level level, std::string_view bound) {
  return std::string(1, level).append(bound);
}

std::string CountedOrderForm::encode(const Node& node) {
  std::string record;
  storage::append_le64(&record, node.count);
  return record;
}

std::string CountedOrderForm::encode(const Leaf& leaf) {
  std::string record;
  storage::append_le32(&record, static_cast<uint32_t>(leaf.items.size()));
  for (const Item& item : leaf.items) {
    if (item.marked) append_packed(&record, {});
    append_packed(&record, item.bytes);
  }
  return record;
}

std::string CountedOrder::key(Level level, std::string_view bound) const {
  return storage::collection_begin(id_).append(element(level, bound));
}

storage::Cursor& CountedOrder::cursor() {
  if (!cursor_) {
    cursor_ = data_.cursor(Space::kOrder, key(kLeaf, {}), key(static_cast<Level>(kTop + 1), {}));
  }
  return *cursor_;
}

bool CountedOrder::on_level(Level level) const {
  return cursor_->valid() && cursor_->key()[kKeyPrefix - 1] == level;
}

std::string_view CountedOrder::bound() const {
  return cursor_->key().substr(kKeyPrefix);
}

uint64_t CountedOrder::count() {
  const std::string_view record = cursor_->value();
  const bool is_leaf = on_level(kLeaf);
  if (bound().empty() || record.size() < (is_leaf ? sizeof(uint32_t) : sizeof(uint64_t))) {
    data_.latch_error(Status(Status::Code::kCorruption, "unreadable order record"));
    return 0;
  }
  return is_leaf ? storage::read_le32(record) : storage::read_le64(record);
}

CountedOrder::Node CountedOrder::node() {
  const uint64_t its_count = count();
  return {.bound = std::string(bound().empty() ? kLastBound : bound()), .count = its_count};
}

template <typename EachItem>
void CountedOrder::read_leaf_here(const EachItem& each) {
  (void)count();  // looks at the record
  if (!read_leaf(cursor_->value(), each)) {
    data_.latch_error(Status(Status::Code::kCorruption, "unreadable order record"));
  }
}

CountedOrder::Leaf CountedOrder::leaf() {
  Leaf leaf{.bound = node().bound, .items = {}};
  read_leaf_here([&](std::string_view item, bool marked) {
    leaf.items.push_back({.bytes = std::string(item), .marked = marked});
    return true;
  });
  return leaf;
}

bool CountedOrder::seek_leaf(std::string_view item) {
  cursor().seek(key(kLeaf, bound_of(item)));
  data_.check(*cursor_);
  return on_level(kLeaf);
}

void CountedOrder::seek_behind(Level level, std::string_view bound) {
  cursor().seek(bound.empty() ? key(level, bound_of(low_)) : key(level, bound) + '\0');
}

uint64_t CountedOrder::rank(std::string_view item) {
  const std::string its_bound = bound_of(item);
  uint64_t before = 0;
  std::string behind;
  for (const Level level : kDown) {
    seek_behind(level, behind);
    for (; on_level(level); cursor_->next()) {
      const uint64_t its_count = count();
      if (bound() >= its_bound) break;
      before += its_count;
      behind = bound();
    }
    data_.check(*cursor_);
  }
  if (!on_level(kLeaf)) return before;
  read_leaf(cursor_->value(), [&](std::string_view each, bool) {
    before += each < item;
    return each < item;
  });
  return before;
}

std::optional<size_t> CountedOrder::seek_rank(uint64_t rank) {
  if (rank == 0) {
    for (seek_behind(kLeaf, {}); on_level(kLeaf) && count() == 0; cursor_->next()) {
    }
    data_.check(*cursor_);
    return on_level(kLeaf) ? std::optional<size_t>(0) : std::nullopt;
  }
  std::string behind;
  for (const Level level : kDown) {
    bool inside = false;
    for (seek_behind(level, behind); on_level(level); cursor_->next()) {
      const uint64_t its_count = count();
      inside = rank < its_count;
      if (inside) break;
      rank -= its_count;
      behind = bound();
    }
    data_.check(*cursor_);
    if (!inside) return std::nullopt;
  }
  return rank;
}

std::optional<std::string> CountedOrder::at(uint64_t rank) {
  std::optional<std::string> found;
  walk(rank, false, [&](std::string_view item, bool) {
    found.emplace(item);
    return false;
  });
  return found;
}

void CountedOrder::walk(uint64_t rank, bool reverse, const Each& each) {
  const auto index = seek_rank(rank);
  if (!index) return;
  std::vector<std::pair<std::string_view, bool>> items;  // of the leaf under the cursor
  const auto read = [&] {
    items.clear();
    read_leaf_here([&](std::string_view item, bool marked) {
      items.emplace_back(item, marked);
      return true;
    });
  };
  read();
  size_t next = *index;
  while (!data_.failed()) {
    for (; next < items.size(); reverse ? --next : ++next) {  // below 0 it is beyond the end
      if (!each(items[next].first, items[next].second)) return;
    }
    reverse ? cursor_->prev() : cursor_->next();
    if (!on_level(kLeaf)) break;
    read();
    next = reverse ? items.size() - 1 : 0;
  }
  data_.check(*cursor_);
}

void CountedOrder::walk_from(std::string_view item, const Each& each) {
  bool wanted = true;
  for (seek_leaf(std::max<std::string_view>(item, low_)); on_level(kLeaf) && !data_.failed();
       cursor_->next()) {
    read_leaf_here([&](std::string_view its, bool marked) {
      wanted = its < item || each(its, marked);
      return wanted;
    });
    if (!wanted) return;
  }
  data_.check(*cursor_);
}

std::optional<std::string> CountedOrder::item_in_leaf(size_t index) {
  std::optional<std::string> found;
  read_leaf_here([&](std::string_view item, bool) {
    if (index-- != 0) return true;
    found = item;
    return false;
  });
  return found;
}

std::optional<CountedOrder::Leaves> CountedOrder::leaves(uint64_t first, uint64_t end) {
  Leaves found;
  const auto first_index = seek_rank(first);
  if (!first_index) return std::nullopt;
  found.lower = cursor_->key();
  const auto first_item = item_in_leaf(*first_index);
  const auto last_index = seek_rank(end - 1);
  if (!last_index) return std::nullopt;
  found.upper = std::string(cursor_->key()) + '\0';
  const auto last_item = item_in_leaf(*last_index);
  if (!first_item || !last_item) return std::nullopt;
  found.first = *first_item;
  found.last = *last_item;
  return found;
}

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
  if (level != kLeaf) index_.erase(id_, level, bound);
}

void CountedOrderWriter::insert(std::string_view item, bool marked) {
  Leaf at{.bound = std::string(kLastBound), .items = {}};
  if (seek_leaf(item)) at = leaf();
  const auto place = std::ranges::lower_bound(at.items, item, {}, &Item::bytes);
  at.items.insert(place, {.bytes = std::string(item), .marked = marked});
  if (at.items.size() > kLeafItems || (at.items.size() > 1 && at.bytes() > kLeafBytes)) {
    split(std::move(at));
  } else {
    put(at);
  }
}

std::optional<CountedOrder::Leaf> CountedOrderWriter::take(std::string_view item) {
  Leaf at;
  if (seek_leaf(item)) at = leaf();
  const auto place = std::ranges::find(at.items, item, &Item::bytes);
  if (place == at.items.end()) {
    data_.latch_error(Status(Status::Code::kCorruption, "an order lacks an item"));
    return std::nullopt;
  }
  at.items.erase(place);
  put(at);
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

void CountedOrderWriter::remove(std::string_view item) {
  const auto at = take(item);
  if (!at) return;
  for (const Level level : {kMiddle, kTop}) change(level, item, -1);
  if (at->items.size() < kLeafItemsMin) shrink(*at, item);
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
  if (at->items.size() < kLeafItemsMin) shrink(*at, from);
  insert(to, marked);
  for (const Level level : changed) change(level, to, 1);
}

void CountedOrderWriter::split(Leaf at) {
  INGOT_CHECK(at.items.size() > 1);  // neither half is empty
  const auto half = at.items.begin() + static_cast<ptrdiff_t>(at.items.size() / 2);
  Leaf left{.bound = bound_of(std::prev(half)->bytes), .items = {at.items.begin(), half}};
  at.items.erase(at.items.begin(), half);
  put(left);
  put(at);
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
  seek_behind(kLeaf, at.bound);
  if (!on_level(kLeaf)) return data_.check(*cursor_);
  Leaf next = leaf();
  if (at.items.size() + next.items.size() > kLeafItemsJoined ||
      at.bytes() + next.bytes() > kLeafBytesJoined) {
    return;
  }
  next.items.insert(next.items.begin(), at.items.begin(), at.items.end());
  erase(kLeaf, at.bound);
  put(next);
}

void follow_order(OrderIndex& index, std::string_view key, const std::string_view* record) {
  if (key.size() <= kKeyPrefix) return;
  const storage::CollectionId id = storage::read_be64(key);
  const auto level = static_cast<uint8_t>(key[kKeyPrefix - 1]);
  const std::string_view bound = key.substr(kKeyPrefix);
  if (index.nodes(id, level) == nullptr) return;
  if (record == nullptr) return index.erase(id, level, bound);
  index.set(id, level, {.bound = std::string(bound), .count = storage::read_le64(*record)});
}

void CountedOrderBuilder::add(std::string_view item, bool marked) {
  INGOT_CHECK(leaf_.items.empty() || leaf_.items.back().bytes < item);
  // Not before the next item comes: the last record of a level has a bound of its own.
  if (leaf_.items.size() >= kLeafItemsBuilt || leaf_.bytes() >= kLeafBytesBuilt) {
    flush(bound_of(leaf_.items.back().bytes));
  }
  leaf_.items.push_back({.bytes = std::string(item), .marked = marked});
}

void CountedOrderBuilder::finish() {
  flush(std::string(kLastBound));
}

void CountedOrderBuilder::flush(std::string bound) {
  INGOT_CHECK(leaf_.items.empty() || bound == kLastBound ||
              bound == bound_of(leaf_.items.back().bytes));
  const bool last = bound == kLastBound;
  middle_ += leaf_.items.size();
  leaf_.bound = bound;
  put_(Space::kOrder, element(kLeaf, bound), encode(leaf_));
  leaf_.items.clear();
  if (!last && middle_ < kNodeMax[kMiddle] * 3 / 4) return;
  top_ += middle_;
  const Node middle{.bound = bound, .count = std::exchange(middle_, 0)};
  put_(Space::kOrder, element(kMiddle, bound), encode(middle));
  if (!last && top_ < kNodeMax[kTop] * 3 / 4) return;
  const Node top{.bound = std::move(bound), .count = std::exchange(top_, 0)};
  put_(Space::kOrder, element(kTop, top.bound), encode(top));
}

}  // namespace ingot::types
