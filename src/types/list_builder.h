// Makes a list of its elements, given from the left.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/types/built_value.h"

namespace ingot::types {

class ListBuilder {
 public:
  ListBuilder(uint64_t inline_max_bytes, PutElement put)
      : inline_max_bytes_(inline_max_bytes), put_(std::move(put)) {}

  void add(std::string_view element);
  BuiltValue finish();

 private:
  void put(std::string_view element);

  const uint64_t inline_max_bytes_;
  const PutElement put_;
  std::string packed_;  // the small form
  uint64_t length_ = 0;
  uint64_t put_so_far_ = 0;
  bool is_large_ = false;
};

}  // namespace ingot::types
