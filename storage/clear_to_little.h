// Emptying what a group of commands fills.
#pragma once

#include <cstddef>

namespace ingot::storage {

// Of what a large unit needed, nothing more is kept than a small one uses: it would take its memory
// for ever, and walking a table takes what its capacity does. `capacity`: in elements.
template <typename Container>
void clear_to_little(Container& container, size_t capacity) {
  constexpr size_t kKept = 16 << 10;
  if (capacity > kKept) {
    container = Container();
  } else {
    container.clear();
  }
}

}  // namespace ingot::storage
