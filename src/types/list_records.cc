// Looking for an element in the nodes of its block, then alone.
#include "src/types/list_records.h"

namespace ingot::types {

bool find_element(storage::Reader& data, storage::CollectionId id, const ListBounds& bounds,
                  uint64_t label, std::string* stored, ListElements* found) {
  const auto holds = [&](uint64_t at) {
    if (data.failed() || !data.get(storage::Space::kData, ListKey(id, at), stored)) return false;
    if (!read_elements(at, *stored, found)) data.latch_error(corrupt_list());
    return !data.failed() && label >= found->first && label <= found->last();
  };
  const auto holds_node = [&](ListEnd side) {
    const bool any = side == ListEnd::kLeft ? bounds.left_nodes : bounds.right_nodes;
    return any && holds(node_label(side, label));
  };
  // Where a list began its elements were pushed to the right from, and to the left.
  const ListEnd likely = label >= kFirstLabel ? ListEnd::kLeft : ListEnd::kRight;
  return holds_node(likely) || holds(label) || holds_node(opposite(likely));
}

}  // namespace ingot::types
