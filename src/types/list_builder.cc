// Collecting elements in memory, then under the labels of a long list, and linking it.
#include "src/types/list_builder.h"

#include "src/types/list_bytes.h"
#include "src/types/list_node.h"
#include "src/types/packed.h"

namespace ingot::types {

void ListBuilder::put(std::string_view element) {
  const uint64_t label = kFirstLabel + put_so_far_ * kListStride;
  const bool begins = put_so_far_++ % kNodeElements == 0;
  const size_t bytes = packed_bytes(element);
  if (begins || node_.size() + bytes > kNodeBytes) put_node();
  if (begins && bytes <= kNodeBytes / 2) {
    node_.assign(1, kLeftNode);
    node_label_ = node_label(ListEnd::kLeft, label);
  }
  if (!node_.empty()) return append_packed(&node_, element);
  put_(storage::Space::kData, item_of(label),
       std::string(1, storage::kPlainElement).append(element));
}

void ListBuilder::put_node() {
  if (node_.empty()) return;
  put_(storage::Space::kData, item_of(node_label_), node_);
  node_.clear();
  has_nodes_ = true;
}

void ListBuilder::add(std::string_view element) {
  ++length_;
  if (is_large_) return put(element);
  append_packed(&packed_, element);
  if (packed_.size() <= inline_max_bytes_) return;
  is_large_ = true;
  PackedReader small(packed_);
  for (std::string_view each; small.next(&each);) put(each);
  packed_.clear();
}

BuiltValue ListBuilder::finish() {
  BuiltValue list{.metadata = {.type = storage::ValueType::kList},
                  .payload = std::move(packed_),
                  .size = length_};
  if (is_large_) {
    put_node();
    list.metadata.collection = storage::Metadata::Collection{.count = length_, .revision = 1};
    encode_bounds({.first = kFirstLabel,
                   .last = kFirstLabel + (length_ - 1) * kListStride,
                   .left_nodes = has_nodes_},
                  &list.payload);
  }
  return list;
}

GappedListBuilder::GappedListBuilder(PutElement put) : put_(std::move(put)), order_(put_) {}

void GappedListBuilder::add(uint64_t label, std::string_view element) {
  if (length_++ == 0) bounds_.first = label;
  bounds_.last = label;
  put_(storage::Space::kData, item_of(label),
       std::string(1, storage::kPlainElement).append(element));
  order_.add(item_of(label));
}

BuiltValue GappedListBuilder::finish() {
  order_.finish();
  BuiltValue list{.metadata = {.type = storage::ValueType::kList}, .payload = {}, .size = length_};
  list.metadata.collection = storage::Metadata::Collection{.count = length_, .revision = 1};
  encode_bounds(bounds_, &list.payload);
  return list;
}

BuiltValue part_of_list(storage::Reader& data, const Record& record, uint64_t first, uint64_t end,
                        uint64_t inline_max_bytes, const PutElement& put) {
  ListBuilder part(inline_max_bytes, put);
  ListReader list(data, record);
  uint64_t left = end - first;
  if (left > 0) {
    list.walk(first, [&](std::string_view element) {
      part.add(element);
      return --left > 0 && !data.failed();
    });
  }
  BuiltValue built = part.finish();
  built.changes = list.length() - (end - first);
  return built;
}

}  // namespace ingot::types
