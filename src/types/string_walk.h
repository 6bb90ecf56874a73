// Walking a string's bytes without holding it: chunk after chunk, holes left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "src/types/keyspace.h"

namespace ingot::types {

// A piece of the string that begins at `offset`; false ends the walk.
using VisitPiece = std::function<bool(uint64_t offset, std::string_view piece)>;

// The pieces of bytes [offset, offset + bytes), which lie within the string, in order and cut to
// that range. What no piece covers is zero bytes. A walk over many chunks waits for the disk
// (Reader::begin_walk); failures latch there.
void walk_string(storage::Reader& data, const Record& record, uint64_t offset, uint64_t bytes,
                 const VisitPiece& visit);

}  // namespace ingot::types
