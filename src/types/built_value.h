// A value made anew, as a whole: what the STORE commands keep.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "storage/codec.h"
#include "storage/spaces.h"

namespace ingot::types {

// Takes a record of a large value, each once; `element` is its key behind the collection's id.
using PutElement =
    std::function<void(storage::Space space, std::string_view element, std::string_view record)>;

struct BuiltValue {
  // Of a large one the collection's id is still to be filled in, and its payload is `payload`.
  storage::Metadata metadata;
  std::string payload;
  uint64_t size = 0;  // 0: nothing, so no key
  std::string error;  // or the reply of a command that cannot make it
};

}  // namespace ingot::types
