// The ends of a large list as bytes, and its labels as items of an order. Pure.
#pragma once

#include <string>
#include <string_view>

#include "src/types/list_value.h"
#include "storage/status.h"

namespace ingot::types {

inline constexpr size_t kBoundsBytes = 17;

// Bits of the last of them.
inline constexpr uint8_t kGappedBit = 1;
inline constexpr uint8_t kLeftNodesBit = 2;
inline constexpr uint8_t kRightNodesBit = 4;
inline constexpr uint8_t kPoppedLeftBit = 8;
inline constexpr uint8_t kPoppedRightBit = 16;

inline storage::Status corrupt_list() {
  return {storage::Status::Code::kCorruption, "unreadable record of a list"};
}

inline void encode_bounds(const ListBounds& bounds, std::string* out) {
  storage::append_le64(out, bounds.first);
  storage::append_le64(out, bounds.last);
  uint8_t bits = 0;
  if (bounds.gapped) bits |= kGappedBit;
  if (bounds.left_nodes) bits |= kLeftNodesBit;
  if (bounds.right_nodes) bits |= kRightNodesBit;
  if (bounds.popped_left) bits |= kPoppedLeftBit;
  if (bounds.popped_right) bits |= kPoppedRightBit;
  out->push_back(static_cast<char>(bits));
}

[[nodiscard]] inline bool decode_bounds(std::string_view bytes, ListBounds* bounds) {
  if (bytes.size() != kBoundsBytes) return false;
  bounds->first = storage::read_le64(bytes);
  bounds->last = storage::read_le64(bytes.substr(8));
  const auto bits = static_cast<uint8_t>(bytes[16]);
  bounds->gapped = (bits & kGappedBit) != 0;
  bounds->left_nodes = (bits & kLeftNodesBit) != 0;
  bounds->right_nodes = (bits & kRightNodesBit) != 0;
  bounds->popped_left = (bits & kPoppedLeftBit) != 0;
  bounds->popped_right = (bits & kPoppedRightBit) != 0;
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
