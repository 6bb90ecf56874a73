// A long string put together from a key's string and another one that is laid over it: what APPEND
// and SETRANGE make when their argument is large.
#pragma once

#include <cstdint>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"

namespace ingot::types {

// The chunked string that is laid over the base.
struct Splice {
  storage::CollectionId id;
  uint64_t length;
  uint64_t offset;  // in the result

  uint64_t end() const { return offset + length; }
};

// `base` null: an empty string. Holes stay holes. Failures latch in `data`.
BuiltValue splice_string(storage::Reader& data, const Record* base, const Splice& splice,
                         const PutElement& put);

}  // namespace ingot::types
