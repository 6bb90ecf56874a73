// Finding and walking the elements of a large list among its records (list_node.h).
#pragma once

#include <string>

#include "src/types/list_bytes.h"
#include "src/types/list_node.h"
#include "storage/reader.h"

namespace ingot::types {

// From one to another, both of them.
struct Labels {
  uint64_t first = 0;
  uint64_t last = 0;

  bool contains(uint64_t label) const { return label >= first && label <= last; }
};

// The record that holds the element with that label; `*found` points into `*stored`. False when
// there is none, or when reading failed.
bool find_element(storage::Reader& data, storage::CollectionId id, const ListBounds& bounds,
                  uint64_t label, std::string* stored, ListElements* found);

// Calls `each` with the records that hold elements inside, in order or backwards, until it returns
// false. What is inside is what the list has: a node may hold more.
template <typename Each>
void walk_records(storage::Reader& data, storage::CollectionId id, const ListBounds& bounds,
                  Labels inside, bool back, const Each& each) {
  const uint64_t lowest =
      bounds.has_nodes() ? node_label(ListEnd::kLeft, inside.first) : inside.first;
  const uint64_t highest =
      bounds.has_nodes() ? node_label(ListEnd::kRight, inside.last) : inside.last;
  const auto at = data.cursor(storage::Space::kData, ListKey(id, lowest), ListKey(id, highest + 1));
  back ? at->seek_for_prev(ListKey(id, highest)) : at->seek(ListKey(id, lowest));
  ListElements record;
  for (; at->valid(); back ? at->prev() : at->next()) {
    if (!read_elements(label_of(at->key()), at->value(), &record)) {
      return data.latch_error(corrupt_list());
    }
    if (record.last() < inside.first || record.first > inside.last) continue;
    if (!each(record, at->value())) break;
  }
  data.check(*at);
}

// The same, with labels and elements.
template <typename Each>
void walk_elements(storage::Reader& data, storage::CollectionId id, const ListBounds& bounds,
                   Labels inside, bool back, const Each& each) {
  walk_records(data, id, bounds, inside, back, [&](const ListElements& record, std::string_view) {
    for (size_t i = 0; i < record.size; ++i) {
      const size_t index = back ? record.size - 1 - i : i;
      const uint64_t label = record.label(index);
      if (inside.contains(label) && !each(label, record.elements[index])) return false;
    }
    return true;
  });
}

}  // namespace ingot::types
