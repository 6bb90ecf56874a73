// Pushing, popping, inserting and removing elements, and making room between labels.
#include <algorithm>
#include <memory>

#include "src/types/collection.h"
#include "src/types/list_records.h"
#include "src/types/list_value.h"
#include "src/types/packed.h"

namespace ingot::types {

using storage::Metadata;
using storage::Space;

namespace {

std::string record_of(std::string_view element) {
  return std::string(1, storage::kPlainElement).append(element);
}

// Also of the smallest number, which has no opposite.
uint64_t magnitude(int64_t number) {
  return number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
}

}  // namespace

ListWriter::ListWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
                       uint64_t inline_max_bytes)
    : keys_(keys), db_(db), key_(key), before_(before), inline_max_bytes_(inline_max_bytes) {
  after_.type = storage::ValueType::kList;
  if (before == nullptr) return;
  after_ = before->metadata();
  collection_ = after_.collection;
  if (collection_) {
    if (!decode_bounds(before->payload(), &bounds_)) keys.data().latch_error(corrupt_list());
    return;
  }
  PackedReader reader(before->payload());
  std::string_view element;
  while (reader.next(&element)) small_.emplace_back(element);
  small_bytes_ = before->payload().size();
}

CountedOrderWriter ListWriter::order() {
  return {keys_.overlay(), keys_.orders(), id(), item_of(bounds_.first)};
}

std::unique_ptr<storage::Cursor> ListWriter::cursor() {
  return keys_.data().cursor(Space::kData, ListKey(id(), bounds_.first),
                             storage::collection_end(id()));
}

void ListWriter::put(uint64_t label, std::string_view element) {
  keys_.overlay().put(Space::kData, ListKey(id(), label), record_of(element));
}

void ListWriter::make_large() {
  collection_ = Metadata::Collection{.id = keys_.new_collection()};
  for (const std::string& element : small_) push_large(ListEnd::kRight, element);
  small_.clear();
}

void ListWriter::make_gapped() {
  if (bounds_.gapped) return;
  Placed nodes;
  const std::string prefix = storage::collection_begin(id());
  CountedOrderBuilder labels(
      [&](storage::Space space, std::string_view element, std::string_view record) {
        const std::string key = std::string(prefix).append(element);
        keys_.overlay().put(space, key, record);
        // A unit that was undone may have made an order here before.
        follow_order(keys_.orders(), key, &record);
      });
  const Labels all{.first = bounds_.first, .last = bounds_.last};
  walk_records(keys_.data(), id(), bounds_, all, /*back=*/false,
               [&](const ListElements& record, std::string_view stored) {
                 for (size_t i = 0; i < record.size; ++i) {
                   if (all.contains(record.label(i))) labels.add(item_of(record.label(i)));
                 }
                 if (record.is_node()) {
                   nodes.emplace_back(node_label(record.side(), record.first), stored);
                 }
                 return true;
               });
  labels.finish();
  for (const auto& [label, stored] : nodes) {
    ListElements node;
    if (read_elements(label, stored, &node)) put_apart(node);
  }
  bounds_ = {.first = bounds_.first, .last = bounds_.last, .gapped = true};
}

// Each element of a node that the list still has gets a record of its own.
void ListWriter::put_apart(const ListElements& node) {
  keys_.overlay().remove(Space::kData, ListKey(id(), node_label(node.side(), node.first)));
  for (size_t i = 0; i < node.size; ++i) {
    const uint64_t label = node.label(i);
    if (label >= bounds_.first && label <= bounds_.last) put(label, node.elements[i]);
  }
}

void ListWriter::push(ListEnd end, std::string_view element) {
  changed_ = true;
  if (!collection_) {
    end == ListEnd::kLeft ? small_.emplace_front(element) : small_.emplace_back(element);
    small_bytes_ += packed_bytes(element);
    if (small_bytes_ > inline_max_bytes_) make_large();
    return;
  }
  push_large(end, element);
}

void ListWriter::push_large(ListEnd end, std::string_view element) {
  if (collection_->count++ == 0) {
    bounds_ = {.first = kFirstLabel, .last = kFirstLabel, .gapped = bounds_.gapped};
  } else {
    if (popped(end)) forget_popped(end);
    end == ListEnd::kLeft ? bounds_.first -= kListStride : bounds_.last += kListStride;
  }
  const uint64_t label = end == ListEnd::kLeft ? bounds_.first : bounds_.last;
  if (!bounds_.gapped) return push_dense(end, label, element);
  keys_.overlay().put_new(Space::kData, ListKey(id(), label), record_of(element));
  order().add(item_of(label));
}

// A node begins with its block, and grows while it is not committed: later it would have to be
// written anew for each element.
void ListWriter::push_dense(ListEnd end, uint64_t label, std::string_view element) {
  const ListEnd side = opposite(end);
  const uint64_t place = place_in_node(side, label);
  const ListKey key(id(), node_label(side, label));
  const size_t bytes = packed_bytes(element);
  if (place == 0 && bytes <= kNodeBytes / 2) {
    std::string node(1, node_byte(side));
    append_packed(&node, element);
    (side == ListEnd::kLeft ? bounds_.left_nodes : bounds_.right_nodes) = true;
    return keys_.overlay().put_new(Space::kData, key, node);
  }
  if (place != 0 && bytes <= kNodeBytes) {
    const auto takes_it = [=](std::string_view node) {
      return node.size() + bytes <= kNodeBytes && elements_in(node) == place;
    };
    std::string length;
    append_varint(&length, element.size());
    if (keys_.overlay().extend(Space::kData, key, takes_it, length, element)) return;
  }
  keys_.overlay().put_new(Space::kData, ListKey(id(), label), record_of(element));
}

// Before something is pushed where elements were popped from a node that is still there: it loses
// those. It cannot when they are its first ones; then it is given up.
void ListWriter::forget_popped(ListEnd end) {
  popped(end) = false;
  std::string stored;
  ListElements node;
  const uint64_t label = end == ListEnd::kLeft ? bounds_.first : bounds_.last;
  if (!find_element(keys_.data(), id(), bounds_, label, &stored, &node) || !node.is_node()) return;
  if (node.side() == end) return put_apart(node);
  const uint64_t left = place_in_node(node.side(), label) + 1;
  PackedReader kept(std::string_view(stored).substr(1));
  std::string_view element;
  for (uint64_t i = 0; i < left; ++i) {
    if (!kept.next(&element)) return keys_.data().latch_error(corrupt_list());
  }
  keys_.overlay().put(Space::kData, ListKey(id(), node_label(node.side(), label)),
                      std::string_view(stored).substr(0, 1 + kept.position()));
}

// Whoever pops mostly goes on; each time a stretch of labels begins, its elements are fetched.
void ListWriter::read_ahead(ListEnd end, uint64_t label) {
  constexpr uint64_t kStretch = 64 * kListStride;
  if (bounds_.gapped) return;
  const uint64_t begin = label / kStretch * kStretch;
  const uint64_t last = begin + kStretch - kListStride;
  if (label != (end == ListEnd::kLeft ? begin : last)) return;
  keys_.overlay().read_ahead(Space::kData, ListKey(id(), node_label(ListEnd::kLeft, begin)),
                             ListKey(id(), node_label(ListEnd::kRight, last) + 1),
                             [](std::string_view) {});
}

void ListWriter::pop(ListEnd end, std::string* element) {
  changed_ = true;
  if (!collection_) {
    std::string taken = std::move(end == ListEnd::kLeft ? small_.front() : small_.back());
    end == ListEnd::kLeft ? small_.pop_front() : small_.pop_back();
    small_bytes_ -= packed_bytes(taken);
    if (element != nullptr) *element = std::move(taken);
    return;
  }
  const uint64_t label = end == ListEnd::kLeft ? bounds_.first : bounds_.last;
  std::string stored;
  ListElements found;
  if (element != nullptr || bounds_.has_nodes()) {
    read_ahead(end, label);
    if (!find_element(keys_.data(), id(), bounds_, label, &stored, &found)) {
      if (!keys_.data().failed()) keys_.data().latch_error(corrupt_list());
      return;
    }
    if (element != nullptr) element->assign(found.at(label));
  }
  if (!found.is_node()) return take_out(label);
  // The node goes with the last element that the list has of it.
  const bool more = end == ListEnd::kLeft ? label < std::min(found.last(), bounds_.last)
                                          : label > std::max(found.first, bounds_.first);
  if (!more) {
    keys_.overlay().remove(Space::kData, ListKey(id(), node_label(found.side(), label)));
  }
  popped(end) = more;
  --collection_->count;
  end == ListEnd::kLeft ? bounds_.first += kListStride : bounds_.last -= kListStride;
}

// Removes an element that stands alone and moves the end that it may have been.
void ListWriter::take_out(uint64_t label) {
  const bool is_first = label == bounds_.first;
  const bool is_last = label == bounds_.last;
  if (!is_first && !is_last) make_gapped();
  keys_.overlay().remove(Space::kData, ListKey(id(), label));
  --collection_->count;
  if (bounds_.gapped) order().remove(item_of(label));
  if (collection_->count == 0) return;
  if (!bounds_.gapped) {
    if (is_first) bounds_.first += kListStride;
    if (is_last) bounds_.last -= kListStride;
    return;
  }
  const auto at = cursor();
  if (is_first) at->seek(ListKey(id(), label));
  if (is_last) at->seek_for_prev(ListKey(id(), label));
  if ((is_first || is_last) && at->valid()) {
    (is_first ? bounds_.first : bounds_.last) = label_of(at->key());
  }
  keys_.data().check(*at);
}

uint64_t ListWriter::label_at(uint64_t index) {
  if (!bounds_.gapped) return bounds_.first + index * kListStride;
  const auto label = order().at(index);
  return label ? label_of_item(*label) : 0;
}

void ListWriter::set(uint64_t index, std::string_view element) {
  changed_ = true;
  if (collection_) return set_large(label_at(index), element);
  small_bytes_ += packed_bytes(element);
  small_bytes_ -= packed_bytes(small_[index]);
  small_[index] = element;
  if (small_bytes_ > inline_max_bytes_) make_large();
}

void ListWriter::set_large(uint64_t label, std::string_view element) {
  std::string stored;
  ListElements found;
  if (!bounds_.has_nodes()) return put(label, element);
  if (!find_element(keys_.data(), id(), bounds_, label, &stored, &found)) {
    if (!keys_.data().failed()) keys_.data().latch_error(corrupt_list());
    return;
  }
  if (!found.is_node()) return put(label, element);
  found.elements[(label - found.first) / kListStride] = element;
  std::string node(1, found.form);
  for (size_t i = 0; i < found.size; ++i) {
    append_packed(&node, found.elements[found.form == kLeftNode ? i : found.size - 1 - i]);
  }
  if (node.size() > kNodeBytes) return put_apart(found);
  keys_.overlay().put(Space::kData, ListKey(id(), node_label(found.side(), label)), node);
}

bool ListWriter::insert(bool before, std::string_view pivot, std::string_view element) {
  if (!collection_) {
    auto at = std::ranges::find(small_, pivot);
    if (at == small_.end()) return false;
    small_.emplace(before ? at : at + 1, element);
    small_bytes_ += packed_bytes(element);
    changed_ = true;
    if (small_bytes_ > inline_max_bytes_) make_large();
    return true;
  }
  const std::vector<uint64_t> found = matching(1, pivot);
  if (found.empty()) return false;
  insert_at(before, found.front(), element);
  return true;
}

void ListWriter::insert_at(bool before, uint64_t at, std::string_view element) {
  if (before ? at == bounds_.first : at == bounds_.last) {
    return push(before ? ListEnd::kLeft : ListEnd::kRight, element);
  }
  changed_ = true;
  make_gapped();
  const auto walk = cursor();
  uint64_t neighbour = at;
  walk->seek(ListKey(id(), at));
  if (walk->valid()) before ? walk->prev() : walk->next();
  if (walk->valid()) neighbour = label_of(walk->key());
  keys_.data().check(*walk);
  const uint64_t label = room_between(std::min(at, neighbour), std::max(at, neighbour));
  put(label, element);
  ++collection_->count;
  order().add(item_of(label));
}

// A free label between two neighbours, which may be moved for it.
uint64_t ListWriter::room_between(uint64_t left, uint64_t right) {
  if (right - left >= 2) return left + (right - left) / 2;
  // How many stand before the gap tells where it is once the labels have moved.
  const uint64_t rank = order().rank(item_of(right));
  spread(left);
  const uint64_t moved_left = label_at(rank - 1);
  const uint64_t moved_right = label_at(rank);
  return moved_left + (moved_right - moved_left) / 2;
}

// Gives the elements around a label new ones, evenly, in as wide a stretch as that needs.
void ListWriter::spread(uint64_t left) {
  constexpr uint64_t kRoom = 1024;  // between two neighbours
  for (uint64_t width = 32;; width *= 2) {
    Placed inside;
    const auto at = cursor();
    at->seek_for_prev(ListKey(id(), left));
    for (uint64_t i = 0; i < width && at->valid(); ++i) at->prev();
    const bool to_front = !at->valid();
    if (to_front) at->seek(ListKey(id(), bounds_.first));
    const uint64_t low = to_front ? bounds_.first - 2 * width * kListStride : label_of(at->key());
    if (!to_front) at->next();
    for (; at->valid() && inside.size() < 2 * width; at->next()) {
      inside.emplace_back(label_of(at->key()), at->value());
    }
    const bool to_back = !at->valid();
    const uint64_t high = to_back ? bounds_.last + 2 * width * kListStride : label_of(at->key());
    keys_.data().check(*at);
    if (keys_.data().failed() || inside.empty()) return;
    const uint64_t step = (high - low) / (inside.size() + 1);
    if (step < kRoom) continue;
    for (const auto& [label, stored] : inside) {
      keys_.overlay().remove(Space::kData, ListKey(id(), label));
      order().remove(item_of(label));
    }
    uint64_t label = low;
    // Before anything stands there: the order counts from it on.
    if (to_front) bounds_.first = low + step;
    for (const auto& [old, stored] : inside) {
      label += step;
      keys_.overlay().put(Space::kData, ListKey(id(), label), stored);
      order().add(item_of(label));
    }
    if (to_back) bounds_.last = label;
    return;
  }
}

std::vector<uint64_t> ListWriter::matching(int64_t count, std::string_view element) {
  std::vector<uint64_t> labels;
  walk_elements(keys_.data(), id(), bounds_, {.first = bounds_.first, .last = bounds_.last},
                /*back=*/count < 0, [&](uint64_t label, std::string_view each) {
                  if (each == element) labels.push_back(label);
                  return labels.empty() || labels.size() != magnitude(count);
                });
  return labels;
}

void ListWriter::remove_at(const std::vector<uint64_t>& labels) {
  // From the outside in: what goes from an end leaves a dense list dense.
  auto low = labels.begin();
  auto high = labels.end();
  for (; low != high && *low == bounds_.first; ++low) pop(ListEnd::kLeft, nullptr);
  for (; low != high && *(high - 1) == bounds_.last; --high) pop(ListEnd::kRight, nullptr);
  for (; low != high; ++low) take_out(*low);
  changed_ = changed_ || !labels.empty();
}

uint64_t ListWriter::remove(int64_t count, std::string_view element) {
  if (collection_) {
    std::vector<uint64_t> labels = matching(count, element);
    std::ranges::sort(labels);
    remove_at(labels);
    return labels.size();
  }
  uint64_t left = count == 0 ? small_.size() : magnitude(count);
  uint64_t removed = 0;
  auto goes = [&](const std::string& each) {
    if (each != element || left == 0) return false;
    --left;
    ++removed;
    small_bytes_ -= packed_bytes(each);
    return true;
  };
  if (count < 0) std::ranges::reverse(small_);
  // Front to back and each once: the order in which they count.
  std::deque<std::string> kept;
  for (std::string& each : small_) {
    if (!goes(each)) kept.push_back(std::move(each));
  }
  small_ = std::move(kept);
  if (count < 0) std::ranges::reverse(small_);
  changed_ = changed_ || removed != 0;
  return removed;
}

bool ListWriter::finish() {
  if (!changed_) return length() != 0;
  if (length() == 0) {
    if (before_ != nullptr) keys_.remove(db_, key_, *before_);
    return false;
  }
  std::string payload;
  if (collection_) {
    encode_bounds(bounds_, &payload);
  } else {
    for (const std::string& element : small_) append_packed(&payload, element);
  }
  after_.collection = collection_;
  after_.payload = payload;
  revise(&after_);
  keys_.store(db_, key_, before_, after_);
  changed_ = false;
  return true;
}

}  // namespace ingot::types
