// How the elements of a dense list stand in records: alone, or many in a node, as Redis' quicklist
// has them. Pure.
//
// The labels of a dense list fall into blocks of kNodeElements. A block may have a left node with
// its first elements, a right node with its last ones, and between them elements that stand alone:
//
//   id | first label of the block - kNodeOffset  ->  2 | the first, the second ... packed
//   id | label                                   ->  0 | element
//   id | last label of the block + kNodeOffset   ->  3 | the last, the last but one ... packed
//
// so that the records of a list stand in the order of its elements, and that a node grows at its
// end, whichever end of the list is pushed to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/types/list_value.h"
#include "src/types/packed.h"
#include "storage/codec.h"

namespace ingot::types {

// Room for some twenty insertions at one place before labels around it are spread anew; and for
// 2^43 pushes at either end.
inline constexpr uint64_t kListStride = 1 << 20;
inline constexpr uint64_t kFirstLabel = 1ull << 63;

inline constexpr uint64_t kNodeElements = 16;
// Of a node's record, so that the cache of hot records takes it; larger elements stand alone.
inline constexpr size_t kNodeBytes = 2000;
inline constexpr uint64_t kBlockLabels = kNodeElements * kListStride;
inline constexpr uint64_t kNodeOffset = kListStride / 4;
inline constexpr char kLeftNode = 2;  // the first byte; storage::kPlainElement: stands alone
inline constexpr char kRightNode = 3;

inline char node_byte(ListEnd side) {
  return side == ListEnd::kLeft ? kLeftNode : kRightNode;
}

inline uint64_t block_of(uint64_t label) {
  return label & ~(kBlockLabels - 1);
}

// The label of the node that the element may stand in.
inline uint64_t node_label(ListEnd side, uint64_t label) {
  return side == ListEnd::kLeft ? block_of(label) - kNodeOffset
                                : block_of(label) + kBlockLabels - kListStride + kNodeOffset;
}

// How many elements of the block stand before this one in a node of that side.
inline uint64_t place_in_node(ListEnd side, uint64_t label) {
  const uint64_t from_left = (label - block_of(label)) / kListStride;
  return side == ListEnd::kLeft ? from_left : kNodeElements - 1 - from_left;
}

// What one record of a large list holds, by rising labels.
struct ListElements {
  std::array<std::string_view, kNodeElements> elements;  // `size` of them
  size_t size = 0;
  uint64_t first = 0;  // label
  char form = 0;       // the first byte

  uint64_t label(size_t index) const { return first + index * kListStride; }
  uint64_t last() const { return label(size - 1); }
  std::string_view at(uint64_t label) const { return elements[(label - first) / kListStride]; }
  bool is_node() const { return form != storage::kPlainElement; }
  ListEnd side() const { return form == kLeftNode ? ListEnd::kLeft : ListEnd::kRight; }
};

// Points into `stored`. False when it is not a record of a list.
[[nodiscard]] bool read_elements(uint64_t label, std::string_view stored, ListElements* out);

// How many elements a readable record holds.
size_t elements_in(std::string_view stored);

}  // namespace ingot::types
