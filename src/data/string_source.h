// A long string as a streamed reply.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "net/connection.h"
#include "src/data/piece_source.h"
#include "src/data/services.h"
#include "src/types/keyspace.h"
#include "src/types/string_value.h"
#include "storage/codec.h"

namespace ingot::data {

class View;

// Bytes [offset, offset + bytes) of a chunked string; `bytes` is not 0.
struct StringSpan {
  types::StringChunks chunks;
  uint64_t offset;
  uint64_t bytes;
};

// The span as `view` has it. Without a view as `keys` sees it, which may be what the writer's group
// has and no view: null when reading failed, which latches there. `frame` may put something around
// the bytes: it is given what reads them, and gives back what reads the reply.
using Frame = std::function<PieceSource::Read(PieceSource::Read read)>;
std::unique_ptr<net::BodySource> stream_string(Services& services, types::KeyReader& keys,
                                               std::shared_ptr<const View> view,
                                               const StringSpan& span, const Frame& frame = {});

}  // namespace ingot::data
