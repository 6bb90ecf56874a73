// Comparing one number with all that a node of a memtable's tree has, at once where the processor
// can: the innermost loop of every insertion and look-up there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ingot::storage {

inline constexpr int kNodePlaces = 15;

// Followed by readable memory of the same size as one more.
using NodeHeads = std::array<std::atomic<uint64_t>, kNodePlaces>;

struct HeadCounts {
  int below = 0;
  int equal = 0;
};
// Of the first `count` heads, each read with acquire, against `head`. By any thread.
HeadCounts count_heads(const NodeHeads& heads, int count, uint64_t head);

}  // namespace ingot::storage
