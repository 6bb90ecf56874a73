// Makes a list of its elements, given from the left.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/list_value.h"

namespace ingot::types {

class ListBuilder {
 public:
  ListBuilder(uint64_t inline_max_bytes, PutElement put)
      : inline_max_bytes_(inline_max_bytes), put_(std::move(put)) {}

  void add(std::string_view element);
  BuiltValue finish();

 private:
  void put(std::string_view element);
  void put_node();

  const uint64_t inline_max_bytes_;
  const PutElement put_;
  std::string packed_;  // the small form
  uint64_t length_ = 0;
  uint64_t put_so_far_ = 0;
  std::string node_;  // that takes the next element; empty: none does
  uint64_t node_label_ = 0;
  bool has_nodes_ = false;
  bool is_large_ = false;
};

// Makes a large list whose elements have labels already, given from the left: a gapped one.
class GappedListBuilder {
 public:
  explicit GappedListBuilder(PutElement put);

  void add(uint64_t label, std::string_view element);  // rising labels
  BuiltValue finish();

 private:
  const PutElement put_;
  CountedOrderBuilder order_;
  ListBounds bounds_{.gapped = true};
  uint64_t length_ = 0;
};

// What is left of a list: the elements [first, end) of it.
BuiltValue part_of_list(storage::Reader& data, const Record& record, uint64_t first, uint64_t end,
                        uint64_t inline_max_bytes, const PutElement& put);

}  // namespace ingot::types
