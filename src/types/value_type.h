// The names of the types, as TYPE and SCAN use them. Pure functions.
#pragma once

#include <string_view>

#include "storage/codec.h"

namespace ingot::types {

constexpr std::string_view type_name(storage::ValueType type) {
  switch (type) {
    case storage::ValueType::kString:
      return "string";
    case storage::ValueType::kList:
      return "list";
    case storage::ValueType::kSet:
      return "set";
    case storage::ValueType::kSortedSet:
      return "zset";
    case storage::ValueType::kHash:
      return "hash";
    case storage::ValueType::kStream:
      return "stream";
  }
  return "none";
}

}  // namespace ingot::types
