// Reading the records of a large list.
#include "src/types/list_node.h"

#include <algorithm>

namespace ingot::types {

bool read_elements(uint64_t label, std::string_view stored, ListElements* out) {
  if (stored.empty()) return false;
  out->form = stored[0];
  stored.remove_prefix(1);
  if (!out->is_node()) {
    out->size = 1;
    out->first = label;
    out->elements[0] = stored;
    return true;
  }
  if (out->form != kLeftNode && out->form != kRightNode) return false;
  out->size = 0;
  PackedReader reader(stored);
  std::string_view element;
  while (reader.next(&element)) {
    if (out->size == kNodeElements) return false;
    out->elements[out->size++] = element;
  }
  if (reader.broken() || out->size == 0) return false;
  if (out->side() == ListEnd::kLeft) {
    out->first = label + kNodeOffset;
  } else {
    std::reverse(out->elements.begin(), out->elements.begin() + out->size);
    out->first = label - kNodeOffset - (out->size - 1) * kListStride;
  }
  return out->first % kListStride == 0;
}

size_t elements_in(std::string_view stored) {
  if (stored[0] == storage::kPlainElement) return 1;
  PackedReader reader(stored.substr(1));
  std::string_view element;
  size_t size = 0;
  while (reader.next(&element)) ++size;
  return size;
}

}  // namespace ingot::types
