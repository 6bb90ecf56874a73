// Makes a hash of its fields, given one by one.
//
// One thread.
#pragma once

#include <string>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/hash_value.h"

namespace ingot::types {

class HashBuilder {
 public:
  HashBuilder(const HashLimits& limits, PutElement put) : limits_(limits), put_(std::move(put)) {}

  void add(std::string_view field, const FieldValue& value);  // each field once
  BuiltValue finish();

 private:
  void put(std::string_view field, const FieldValue& value);

  const HashLimits limits_;
  const PutElement put_;
  storage::Metadata metadata_{.type = storage::ValueType::kHash};
  std::string packed_;  // the small form
  uint64_t size_ = 0;
  bool is_large_ = false;
};

}  // namespace ingot::types
