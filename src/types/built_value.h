// A value made anew, as a whole, by somebody who does not store it: its elements are handed out one
// by one, the rest is answered. docs/architecture.md ("Built values") tells where they are made.
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
  // Of a large one the collection's id is filled in by whoever takes its elements.
  storage::Metadata metadata;
  std::string payload;  // of the metadata
  uint64_t size = 0;    // 0: nothing, so no key
  // Of what is left of another collection: how many elements went. 0: it stays as it is, and
  // nothing was made.
  uint64_t changes = 0;
  int64_t answer = 0;  // of the command that makes it, where that is a number
  std::string error;   // or the reply of a command that cannot make it

  // To be stored; points into this.
  storage::Metadata record() const {
    storage::Metadata record = metadata;
    record.payload = payload;
    return record;
  }
};

}  // namespace ingot::types
