// The records of an order, finding by rank or item, and making an order anew.
#include "src/types/counted_order.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"

namespace ingot::types {

using storage::Space;
using storage::Status;
using Counts = PendingCounts::Counts;

namespace {

constexpr size_t kKeyPrefix = sizeof(storage::CollectionId) + 1;

}  // namespace

size_t CountedOrderForm::Leaf::bytes() const {
  size_t bytes = 0;
  for (const Item& item : items) bytes += packed_bytes(item.bytes) + item.marked;
  return bytes;
}

std::string CountedOrderForm::bound_of(std::string_view item) {
  std::string bound(1, '\0');
  return bound.append(item);
}

// Not as long as they may be, for it is a key, and close to the right one: what comes to stand
// between them belongs to the left leaf, which tells that by its first item; in the right one it
// might have to be sought (find_leaf()).
std::string CountedOrderForm::bound_between(std::string_view left, std::string_view right) {
  constexpr size_t kBytesBehindDifference = 16;
  const auto differs = std::ranges::mismatch(left, right).in2 - right.begin();
  const size_t bytes = static_cast<size_t>(differs) + 1 + kBytesBehindDifference;
  if (bytes < right.size()) return bound_of(right.substr(0, bytes));
  std::string before(right);
  if (before.back() == 0) {
    before.pop_back();
  } else {
    --before.back();
  }
  return bound_of(std::max<std::string_view>(before, left));
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
  std::string key;
  key.reserve(kKeyPrefix + bound.size());
  storage::append_be64(&key, id_);
  key.push_back(level);
  return key.append(bound);
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

void CountedOrder::latch_unreadable() {
  data_.latch_error(Status(Status::Code::kCorruption, "unreadable order record"));
}

uint64_t CountedOrder::count() {
  const std::string_view record = cursor_->value();
  const bool is_leaf = on_level(kLeaf);
  if (bound().empty() || record.size() < (is_leaf ? sizeof(uint32_t) : sizeof(uint64_t))) {
    latch_unreadable();
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
  if (!read_leaf(cursor_->value(), each)) latch_unreadable();
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

template <typename Ask>
std::optional<CountedOrder::Counts::Leaf> CountedOrder::known_leaf(const Ask& ask) {
  if (!counts_) return std::nullopt;
  Counts::Answer answer = ask(*counts_);
  missing_ = std::move(answer.missing);
  return std::move(answer.leaf);
}

// Behind a walk to the record with this bound: the records beside those that it has seen, as they
// are committed.
void CountedOrder::put_missing(std::string_view bound) {
  if (!missing_ || data_.failed()) return;
  storage::Overlay* const overlay = data_.overlay();
  if (overlay == nullptr) return put_missing_here(bound);
  std::unique_ptr<storage::Cursor> merged = std::move(cursor_);
  cursor_ = overlay->committed_cursor(Space::kOrder, key(kLeaf, {}),
                                      key(static_cast<Level>(kTop + 1), {}));
  put_missing_here(bound);
  cursor_ = std::move(merged);
}

void CountedOrder::put_missing_here(std::string_view bound) {
  // Half a megabyte of an order's top, or far more than any of the others.
  constexpr size_t kNodesMax = 4096;
  std::string behind = missing_->behind;
  std::string last = missing_->last;
  // What was missing may have been on the way to another one.
  if (bound <= behind || (!last.empty() && bound > last)) bound = missing_->last;
  for (int at = missing_->level; at >= kLeaf; --at) {
    const auto level = static_cast<Level>(at);
    std::vector<Counts::Node> nodes;
    for (seek_behind(level, behind); on_level(level) && nodes.size() < kNodesMax; cursor_->next()) {
      nodes.push_back({.bound = std::string(this->bound()), .count = count()});
      if (nodes.back().bound == last) break;
    }
    // The writer's answer does not wait for these.
    if (data_.overlay() == nullptr) data_.check(*cursor_);
    if (data_.failed() || cursor_->outcome() != storage::Lookup::kFound || nodes.empty()) return;
    // Not with each request, in vain.
    if (nodes.size() == kNodesMax) return counts_->forget();
    const auto its = std::ranges::lower_bound(nodes, bound, {}, &Counts::Node::bound);
    if (its == nodes.end()) return;
    if (its != nodes.begin()) behind = std::prev(its)->bound;
    last = its->bound;
    counts_->put(level, std::move(nodes));
  }
}

uint64_t CountedOrder::rank(std::string_view item) {
  const std::string its_bound = bound_of(item);
  const auto items_before = [&](std::string_view record) {
    uint64_t items = 0;
    read_leaf(record, [&](std::string_view each, bool) {
      items += each < item;
      return each < item;
    });
    return items;
  };
  const auto known = known_leaf([&](PendingCounts& counts) { return counts.leaf_of(its_bound); });
  std::string record;
  if (known && data_.get(Space::kOrder, key(kLeaf, known->bound), &record)) {
    return known->before + items_before(record);
  }
  if (data_.failed()) return 0;
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
  if (on_level(kLeaf)) before += items_before(cursor_->value());
  put_missing(its_bound);
  return before;
}

// The leaves whose bounds are known, one look-up each, and not for long: whether that was all. If
// not, `rank` is where to go on.
bool CountedOrder::walk_known(uint64_t* rank, bool reverse, const Each& each) {
  constexpr int kLeavesMax = 64;
  std::string record;
  std::vector<std::pair<std::string_view, bool>> items;
  for (int leaves = 0; leaves < kLeavesMax; ++leaves) {
    const auto leaf = known_leaf([&](PendingCounts& counts) { return counts.leaf_at(*rank); });
    if (!leaf) return false;
    if (!data_.get(Space::kOrder, key(kLeaf, leaf->bound), &record)) return data_.failed();
    items.clear();
    const bool readable = read_leaf(record, [&](std::string_view item, bool marked) {
      items.emplace_back(item, marked);
      return true;
    });
    if (!readable || items.size() != leaf->count) return false;
    const size_t first = *rank - leaf->before;
    for (size_t at = first; at < items.size(); reverse ? --at : ++at) {
      if (!each(items[at].first, items[at].second)) return true;
    }
    if (reverse && leaf->before == 0) return true;
    *rank = reverse ? leaf->before - 1 : leaf->before + leaf->count;
  }
  return false;
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
  // Where the writer takes from the front, all that it has taken stands before it.
  const bool takes_first = rank == 0 && data_.overlay() != nullptr;
  if (takes_first || !walk_known(&rank, reverse, each)) walk_here(seek_rank(rank), reverse, each);
}

// From that item of the leaf under the cursor.
void CountedOrder::walk_here(std::optional<size_t> index, bool reverse, const Each& each) {
  if (!index) return;
  if (missing_) {
    const std::string here(bound());
    put_missing(here);
    cursor_->seek(key(kLeaf, here));
    if (!on_level(kLeaf)) return data_.check(*cursor_);
  }
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

std::optional<OrderChange> order_change(std::string_view key, const std::string_view* record) {
  if (key.size() <= kKeyPrefix) return std::nullopt;
  const int level = key[kKeyPrefix - 1];
  const bool is_leaf = level == Counts::kLeaf;
  if (level < Counts::kLeaf || level > Counts::kTop) return std::nullopt;
  OrderChange change{.id = storage::read_be64(key),
                     .change = {.level = level, .bound = key.substr(kKeyPrefix), .count = {}}};
  if (record == nullptr) return change;
  if (record->size() < (is_leaf ? sizeof(uint32_t) : sizeof(uint64_t))) return std::nullopt;
  change.change.count = is_leaf ? storage::read_le32(*record) : storage::read_le64(*record);
  return change;
}

std::pair<std::string, std::string> leaves_of_order(storage::CollectionId id) {
  std::string lower = storage::collection_begin(id);
  std::string upper = lower;
  lower.push_back(Counts::kLeaf);
  upper.push_back(Counts::kLeaf + 1);
  return {std::move(lower), std::move(upper)};
}

void follow_order(OrderIndex& index, std::string_view key, const std::string_view* record) {
  if (key.size() <= kKeyPrefix) return;
  const storage::CollectionId id = storage::read_be64(key);
  const auto level = static_cast<uint8_t>(key[kKeyPrefix - 1]);
  const std::string_view bound = key.substr(kKeyPrefix);
  index.note_last_filled(id, {});
  if (level == Counts::kLeaf) {
    return record == nullptr ? index.erase_leaf(id, bound) : index.leaves().part(id, bound);
  }
  if (index.nodes(id, level) == nullptr) return;
  if (record == nullptr) return index.erase(id, level, bound);
  index.set(id, level, {.bound = std::string(bound), .count = storage::read_le64(*record)});
}

void CountedOrderBuilder::add(std::string_view item, bool marked) {
  INGOT_CHECK(leaf_.items.empty() || leaf_.items.back().bytes < item);
  // What is built leaves room. Not before the next item comes: the last record of a level has a
  // bound of its own.
  if (leaf_.items.size() >= kLeafItems * 3 / 4 || leaf_.bytes() >= kLeafBytes * 3 / 4) {
    flush(bound_between(leaf_.items.back().bytes, item));
  }
  leaf_.items.push_back({.bytes = std::string(item), .marked = marked});
}

void CountedOrderBuilder::finish() {
  flush(std::string(kLastBound));
}

void CountedOrderBuilder::flush(std::string bound) {
  INGOT_CHECK(leaf_.items.empty() || bound == kLastBound ||
              bound >= bound_of(leaf_.items.back().bytes));
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
