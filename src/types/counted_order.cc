// The records of an order, finding by rank or item, and making an order anew.
#include "src/types/counted_order.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

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
  // What is built leaves room. Not before the next item comes: the last record of a level has a
  // bound of its own.
  if (leaf_.items.size() >= kLeafItems * 3 / 4 || leaf_.bytes() >= kLeafBytes * 3 / 4) {
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
