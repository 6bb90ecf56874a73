// Putting long strings together, chunk after chunk.
#include "src/types/string_splice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "src/types/string_value.h"

namespace ingot::types {

using storage::kStringChunkBytes;

namespace {

ChunkReader open_chunks(storage::Reader& data, const StringChunks& chunks) {
  return {data.cursor(storage::Space::kData, storage::collection_begin(chunks.id),
                      storage::collection_end(chunks.id)),
          chunks};
}

// The part of [begin, begin + to.size()) that lies in [from, until).
std::span<char> overlap(std::span<char> to, uint64_t begin, uint64_t from, uint64_t until) {
  const uint64_t first = std::max(begin, from);
  const uint64_t last = std::min(begin + to.size(), until);
  return first < last ? to.subspan(first - begin, last - first) : std::span<char>();
}

}  // namespace

BuiltValue splice_string(storage::Reader& data, const Record* base, const Splice& splice,
                         const PutElement& put) {
  const uint64_t base_length = base != nullptr ? string_length(*base) : 0;
  const uint64_t length = std::max(base_length, splice.end());
  std::optional<ChunkReader> base_chunks;
  if (base != nullptr && base->collection()) {
    base_chunks.emplace(open_chunks(data, chunks_of(*base)));
  }
  ChunkReader laid_over = open_chunks(data, {.id = splice.id});
  const auto read = [&](ChunkReader& chunks, uint64_t offset, std::span<char> to) {
    const bool copied = chunks.read(offset, to);
    if (!chunks.status().ok()) data.latch_error(chunks.status());
    return copied;
  };

  std::array<char, kStringChunkBytes> buffer;
  for (uint64_t begin = 0; begin < length && !data.failed(); begin += kStringChunkBytes) {
    const std::span<char> chunk(buffer.data(),
                                std::min<uint64_t>(kStringChunkBytes, length - begin));
    std::ranges::fill(chunk, '\0');
    bool is_hole = true;
    if (auto part = overlap(chunk, begin, 0, base_length); !part.empty()) {
      if (base_chunks) {
        is_hole = !read(*base_chunks, begin, part);
      } else {
        base->payload().copy(part.data(), part.size(), begin);
        is_hole = false;
      }
    }
    if (auto part = overlap(chunk, begin, splice.offset, splice.end()); !part.empty()) {
      read(laid_over, std::max(begin, splice.offset) - splice.offset, part);
      is_hole = false;
    }
    if (!is_hole) {
      put_chunk(put, static_cast<uint32_t>(begin / kStringChunkBytes),
                {chunk.data(), chunk.size()});
    }
  }
  return {.metadata = {.type = storage::ValueType::kString,
                       .limit_passed = true,
                       .expire_ms = base != nullptr ? base->expire_ms() : 0,
                       .collection = storage::Metadata::Collection{.count = length}},
          .payload = {},
          .size = length,
          .error = {}};
}

}  // namespace ingot::types
