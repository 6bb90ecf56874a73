// A long string as a streamed reply.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/types/piece_source.h"
#include "storage/codec.h"

namespace ingot::types {

// Bytes [offset, offset + bytes) of the chunked string `id`, where `patches` stand in place of
// chunks that the state which is read does not have yet.
struct StringSpan {
  storage::CollectionId id;
  std::map<uint32_t, std::string> patches = {};  // chunk number -> its bytes
  uint64_t offset;
  uint64_t bytes;  // not 0
};
PieceSource::Read read_span(StringSpan span);

}  // namespace ingot::types
