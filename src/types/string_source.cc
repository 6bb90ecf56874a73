// Streaming a string; see string_source.h.
#include "src/types/string_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "src/types/string_value.h"

namespace ingot::types {

using storage::kStringChunkBytes;

namespace {

constexpr uint64_t kSpanPieceBytes = 256 << 10;
static_assert(kSpanPieceBytes % kStringChunkBytes == 0);

void lay_over(const std::map<uint32_t, std::string>& patches, uint64_t offset,
              std::span<char> piece) {
  const uint64_t end = offset + piece.size();
  auto patch = patches.lower_bound(static_cast<uint32_t>(offset / kStringChunkBytes));
  for (; patch != patches.end(); ++patch) {
    const uint64_t begin = uint64_t{patch->first} * kStringChunkBytes;
    if (begin >= end) return;
    const uint64_t from = std::max(begin, offset);
    const uint64_t until = std::min(begin + patch->second.size(), end);
    if (from < until) {
      std::memcpy(piece.data() + (from - offset), patch->second.data() + (from - begin),
                  until - from);
    }
  }
}

}  // namespace

PieceSource::Read read_span(StringSpan span) {
  return [span = std::move(span)](storage::Reader& data, std::string* piece) mutable {
    // Up to a chunk's border.
    const uint64_t piece_end =
        (span.offset / kStringChunkBytes) * kStringChunkBytes + kSpanPieceBytes;
    piece->resize(std::min(span.bytes, piece_end - span.offset));
    ChunkReader reader(data.cursor(storage::Space::kData, storage::collection_begin(span.id),
                                   storage::collection_end(span.id)),
                       span.id);
    reader.read(span.offset, *piece);
    if (!reader.status().ok()) data.latch_error(reader.status());
    lay_over(span.patches, span.offset, *piece);
    span.offset += piece->size();
    span.bytes -= piece->size();
    return span.bytes != 0;
  };
}

}  // namespace ingot::types
