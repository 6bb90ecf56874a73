// Finding and changing elements in the packed record, or in the data space behind the id.
#include "src/types/stream_elements.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/types/packed.h"

namespace ingot::types {

using storage::Space;

namespace {

// Where an element stands among packed ones, or would.
struct Place {
  size_t begin;
  size_t end;  // of its value; `begin` when it is not there
  std::string_view value;
};

Place find_packed(std::string_view packed, std::string_view key) {
  PackedReader reader(packed);
  std::string_view at, value;
  for (;;) {
    const size_t begin = reader.position();
    if (!reader.next(&at) || at > key || !reader.next(&value)) return {begin, begin, {}};
    if (at == key) return {begin, reader.position(), value};
  }
}

}  // namespace

std::string StreamElements::whole_key(std::string_view key) const {
  return storage::collection_begin(*id_).append(key);
}

bool StreamElements::get(std::string_view key, std::string* value) const {
  if (id_) return data_.get(Space::kData, whole_key(key), value);
  const Place place = find_packed(packed_, key);
  value->assign(place.value);
  return place.begin != place.end;
}

void StreamElements::walk(const std::string& lower, const std::string& upper, bool reverse,
                          const Each& each) const {
  if (!id_) return walk_small(lower, upper, reverse, each);
  const std::string begin = whole_key(lower);
  const std::string end = whole_key(upper);
  const size_t id_bytes = begin.size() - lower.size();
  const auto at = data_.cursor(Space::kData, begin, end);
  for (reverse ? at->seek_for_prev(end) : at->seek(begin); at->valid();
       reverse ? at->prev() : at->next()) {
    if (!each(at->key().substr(id_bytes), at->value())) break;
  }
  data_.check(*at);
}

bool StreamElements::Ascending::get(std::string_view key, std::string* value) {
  constexpr int kSingly = 8;
  constexpr int kStepsMax = 16;  // then a seek is less
  if (!elements_.is_large() || singly_ < kSingly) {
    ++singly_;
    return elements_.get(key, value);
  }
  const std::string whole = elements_.whole_key(key);
  bool is_near = at_ != nullptr;
  if (!at_) {
    at_ = elements_.data_.cursor(Space::kData, elements_.whole_key(lower_),
                                 elements_.whole_key(upper_));
  }
  for (int step = 0; is_near && at_->valid() && at_->key() < whole; ++step) {
    is_near = step < kStepsMax;
    if (is_near) at_->next();
  }
  if (!is_near) at_->seek(whole);
  if (at_->valid() && at_->key() == whole) {
    value->assign(at_->value());
    return true;
  }
  elements_.data_.check(*at_);
  return false;
}

void StreamElements::walk_small(const std::string& lower, const std::string& upper, bool reverse,
                                const Each& each) const {
  const std::string packed = packed_;  // which `each` may change
  std::vector<std::pair<std::string_view, std::string_view>> found;
  std::string_view key, value;
  for (PackedReader reader(packed); reader.next(&key) && reader.next(&value) && key < upper;) {
    if (key >= lower) found.emplace_back(key, value);
  }
  if (reverse) std::ranges::reverse(found);
  for (const auto& [its_key, its_value] : found) {
    if (!each(its_key, its_value)) return;
  }
}

void StreamElements::put(storage::Overlay& overlay, std::string_view key, std::string_view value) {
  if (id_) return overlay.put(Space::kData, whole_key(key), value);
  const Place place = find_packed(packed_, key);
  std::string element;
  append_packed(&element, key);
  append_packed(&element, value);
  packed_.replace(place.begin, place.end - place.begin, element);
}

void StreamElements::add(storage::Overlay& overlay, std::string_view key, std::string_view value) {
  if (id_) return overlay.put_new(Space::kData, whole_key(key), value);
  put(overlay, key, value);
}

void StreamElements::remove(storage::Overlay& overlay, std::string_view key) {
  if (id_) return overlay.remove(Space::kData, whole_key(key));
  const Place place = find_packed(packed_, key);
  packed_.erase(place.begin, place.end - place.begin);
}

void StreamElements::make_large(storage::Overlay& overlay, storage::CollectionId id) {
  id_ = id;
  const std::string packed = std::exchange(packed_, {});
  std::string_view key, value;
  for (PackedReader reader(packed); reader.next(&key) && reader.next(&value);) {
    add(overlay, key, value);
  }
}

}  // namespace ingot::types
