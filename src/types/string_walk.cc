// Visiting the parts of a string's chunks that lie within a range.
#include "src/types/string_walk.h"

#include <algorithm>
#include <string>

#include "src/types/string_value.h"

namespace ingot::types {

using storage::Space;

namespace {

// Chunks of up to so many bytes are looked up one by one: they may all be in memory.
constexpr uint64_t kLookedUpBytes = 4 * storage::kStringChunkBytes;

struct Range {
  uint64_t begin;
  uint64_t end;
};

// Hands over the part of a chunk that lies in the range; false: no more.
bool visit_chunk(storage::Reader& data, const StringChunks& chunks, uint64_t number,
                 std::string_view record, Range range, const VisitPiece& visit) {
  std::string_view chunk;
  if (!chunks.decode(record, &chunk)) {
    data.latch_error({storage::Status::Code::kCorruption, "unreadable string chunk"});
    return false;
  }
  const uint64_t chunk_begin = number * chunks.bytes;
  const uint64_t from = std::max(chunk_begin, range.begin);
  const uint64_t until = std::min(chunk_begin + chunk.size(), range.end);
  return from >= until || visit(from, chunk.substr(from - chunk_begin, until - from));
}

void walk_chunks(storage::Reader& data, const StringChunks& chunks, Range range,
                 const VisitPiece& visit) {
  if (!data.begin_walk((range.end - range.begin) / chunks.bytes)) return;
  const std::string lower = chunks.key_at(range.begin);
  auto cursor = data.cursor(Space::kData, lower, storage::collection_end(chunks.id));
  for (cursor->seek(lower); cursor->valid(); cursor->next()) {
    const std::string_view key = cursor->key();
    if (key.size() != lower.size()) {
      data.latch_error({storage::Status::Code::kCorruption, "unreadable string chunk"});
      return;
    }
    const uint64_t number = storage::read_be32(key.substr(sizeof(chunks.id)));
    if (number * chunks.bytes >= range.end) break;
    if (!visit_chunk(data, chunks, number, cursor->value(), range, visit)) break;
  }
  data.check(*cursor);
}

}  // namespace

void walk_string(storage::Reader& data, const Record& record, uint64_t offset, uint64_t bytes,
                 const VisitPiece& visit) {
  if (bytes == 0) return;
  if (!record.collection()) {
    visit(offset, record.payload().substr(offset, bytes));
    return;
  }
  const StringChunks chunks = chunks_of(record);
  const Range range{offset, offset + bytes};
  const uint64_t first = offset / chunks.bytes;
  const uint64_t last = (range.end - 1) / chunks.bytes;
  if ((last - first) * chunks.bytes >= kLookedUpBytes) {
    return walk_chunks(data, chunks, range, visit);
  }
  std::string found;
  for (uint64_t number = first; number <= last; ++number) {
    if (!data.get(Space::kData, chunks.key_at(number * chunks.bytes), &found)) continue;
    if (!visit_chunk(data, chunks, number, found, range, visit)) return;
  }
}

}  // namespace ingot::types
