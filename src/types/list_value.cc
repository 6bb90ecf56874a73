// Reading lists: an element by its index, and walks from either end.
#include "src/types/list_value.h"

#include "src/types/list_bytes.h"
#include "src/types/packed.h"

namespace ingot::types {

using storage::Space;

std::string list_key(storage::CollectionId id, uint64_t label) {
  std::string key = storage::collection_begin(id);
  storage::append_be64(&key, label);
  return key;
}

std::string_view element_of(std::string_view stored) {
  return stored.empty() ? stored : stored.substr(1);
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

std::string ListReader::key_at(uint64_t index) {
  const storage::CollectionId id = record_.collection()->id;
  if (index >= length_) return storage::collection_end(id);
  if (!bounds_.gapped) return list_key(id, bounds_.first + index * kListStride);
  const auto label = CountedOrder(data_, id, item_of(bounds_.first)).at(index);
  return label ? list_key(id, label_of_item(*label)) : storage::collection_end(id);
}

bool ListReader::get(uint64_t index, std::string* element) {
  bool found = false;
  if (is_large()) {
    std::string stored;
    found = data_.get(Space::kData, key_at(index), &stored);
    element->assign(element_of(stored));
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
  const storage::CollectionId id = record_.collection()->id;
  const auto at =
      data_.cursor(Space::kData, list_key(id, bounds_.first), storage::collection_end(id));
  for (at->seek(key_at(index)); at->valid(); at->next()) {
    if (!each(element_of(at->value()))) break;
  }
  data_.check(*at);
}

void ListReader::walk_placed(bool back, const EachPlaced& each) {
  const storage::CollectionId id = record_.collection()->id;
  const auto at =
      data_.cursor(Space::kData, list_key(id, bounds_.first), storage::collection_end(id));
  back ? at->seek_for_prev(list_key(id, bounds_.last)) : at->seek(list_key(id, bounds_.first));
  for (; at->valid(); back ? at->prev() : at->next()) {
    if (!each(label_of(at->key()), at->value())) break;
  }
  data_.check(*at);
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
  walk_placed(true, [&](uint64_t, std::string_view record) { return each(element_of(record)); });
}

}  // namespace ingot::types
