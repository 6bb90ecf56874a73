// Reading lists: an element by its index, and walks from either end.
#include "src/types/list_value.h"

#include "src/types/list_records.h"
#include "src/types/packed.h"

namespace ingot::types {

using storage::Space;

ListKey::ListKey(storage::CollectionId id, uint64_t label) {
  storage::write_be64(id, bytes_.data());
  storage::write_be64(label, bytes_.data() + sizeof(id));
}

ListReader::ListReader(storage::Reader& data, const Record& record) : data_(data), record_(record) {
  if (is_large()) {
    length_ = record.collection()->count;
    if (!decode_bounds(record.payload(), &bounds_)) data.latch_error(corrupt_list());
    return;
  }
  PackedReader reader(record.payload());
  std::string_view element;
  while (reader.next(&element)) ++length_;
  if (reader.broken()) data.latch_error(corrupt_list());
}

uint64_t ListReader::label_at(uint64_t index) {
  if (!bounds_.gapped) return bounds_.first + index * kListStride;
  const auto item = CountedOrder(data_, record_.collection()->id, item_of(bounds_.first)).at(index);
  if (!item && !data_.failed()) data_.latch_error(corrupt_list());
  return item ? label_of_item(*item) : bounds_.last;
}

ListReader::Stretch ListReader::stretch(uint64_t begin, uint64_t end) {
  const storage::CollectionId id = record_.collection()->id;
  const uint64_t first = label_at(begin);
  const uint64_t last = label_at(end - 1);
  const bool nodes = bounds_.has_nodes();
  const ListKey lower(id, nodes ? node_label(ListEnd::kLeft, first) : first);
  const ListKey upper(id, (nodes ? node_label(ListEnd::kRight, last) : last) + 1);
  return {.lower = std::string(lower), .upper = std::string(upper), .first = first, .last = last};
}

bool ListReader::get(uint64_t index, std::string* element) {
  bool found = false;
  if (is_large()) {
    std::string stored;
    ListElements elements;
    const uint64_t label = label_at(index);
    found = find_element(data_, record_.collection()->id, bounds_, label, &stored, &elements);
    if (found) element->assign(elements.at(label));
  } else {
    walk(index, [&](std::string_view each) {
      element->assign(each);
      found = true;
      return false;
    });
  }
  if (!found && !data_.failed()) data_.latch_error(corrupt_list());
  return found;
}

void ListReader::walk(uint64_t index, const Each& each) {
  if (!is_large()) {
    PackedReader reader(record_.payload());
    std::string_view element;
    for (uint64_t at = 0; reader.next(&element); ++at) {
      if (at >= index && !each(element)) return;
    }
    return;
  }
  if (index >= length_) return;
  walk_elements(data_, record_.collection()->id, bounds_,
                {.first = label_at(index), .last = bounds_.last}, /*back=*/false,
                [&](uint64_t, std::string_view element) { return each(element); });
}

void ListReader::walk_placed(bool back, const EachPlaced& each) {
  walk_elements(data_, record_.collection()->id, bounds_,
                {.first = bounds_.first, .last = bounds_.last}, back, each);
}

void ListReader::walk_back(const Each& each) {
  if (!is_large()) {
    std::vector<std::string_view> elements;
    PackedReader reader(record_.payload());
    std::string_view element;
    while (reader.next(&element)) elements.push_back(element);
    for (auto at = elements.rbegin(); at != elements.rend() && each(*at); ++at) {
    }
    return;
  }
  walk_placed(true, [&](uint64_t, std::string_view element) { return each(element); });
}

}  // namespace ingot::types
