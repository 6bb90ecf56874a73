// The bytes of a large list, for list.cc and list_writer.cc. Pure.
#pragma once

#include <string>
#include <string_view>

#include "src/types/list_value.h"
#include "storage/status.h"

namespace ingot::types {

// Room for some twenty insertions at one place before labels around it are spread anew; and for
// 2^43 pushes at either end.
inline constexpr uint64_t kListStride = 1 << 20;
inline constexpr uint64_t kFirstLabel = 1ull << 63;
inline constexpr size_t kBoundsBytes = 17;

inline storage::Status corrupt_list() {
  return {storage::Status::Code::kCorruption, "unreadable record of a list"};
}

inline void encode_bounds(const ListBounds& bounds, std::string* out) {
  storage::append_le64(out, bounds.first);
  storage::append_le64(out, bounds.last);
  out->push_back(bounds.gapped ? '\1' : '\0');
}

[[nodiscard]] inline bool decode_bounds(std::string_view bytes, ListBounds* bounds) {
  if (bytes.size() != kBoundsBytes) return false;
  bounds->first = storage::read_le64(bytes);
  bounds->last = storage::read_le64(bytes.substr(8));
  bounds->gapped = bytes[16] != 0;
  return true;
}

// The items of a CountedOrder over the elements.
inline std::string item_of(uint64_t label) {
  std::string item;
  storage::append_be64(&item, label);
  return item;
}

inline uint64_t label_of_item(std::string_view item) {
  return item.size() == sizeof(uint64_t) ? storage::read_be64(item) : 0;
}

inline uint64_t label_of(std::string_view list_key) {
  return storage::read_be64(list_key.substr(sizeof(storage::CollectionId)));
}

}  // namespace ingot::types
