// Reading a string piece by piece, with what no view has laid over it.
#include "src/data/string_source.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "src/data/store.h"

namespace ingot::data {

namespace {

constexpr uint64_t kSpanPieceBytes = 256 << 10;
static_assert(kSpanPieceBytes % storage::kStringChunkBytes == 0);

void lay_over(const std::map<uint32_t, std::string>& patches, const StringSpan& span,
              std::span<char> piece) {
  const uint64_t offset = span.offset;
  const uint64_t end = offset + piece.size();
  auto patch = patches.lower_bound(static_cast<uint32_t>(offset / span.chunks.bytes));
  for (; patch != patches.end(); ++patch) {
    const uint64_t begin = uint64_t{patch->first} * span.chunks.bytes;
    if (begin >= end) return;
    const uint64_t from = std::max(begin, offset);
    const uint64_t until = std::min(begin + patch->second.size(), end);
    if (from < until) {
      std::memcpy(piece.data() + (from - offset), patch->second.data() + (from - begin),
                  until - from);
    }
  }
}

PieceSource::Read read_span(StringSpan span, std::map<uint32_t, std::string> patches) {
  return [span, patches = std::move(patches)](storage::Reader& data, std::string* piece) mutable {
    // Up to a chunk's border.
    const uint64_t piece_end =
        (span.offset / span.chunks.bytes) * span.chunks.bytes + kSpanPieceBytes;
    piece->resize(std::min(span.bytes, piece_end - span.offset));
    const storage::CollectionId id = span.chunks.id;
    types::ChunkReader reader(data.cursor(storage::Space::kData, storage::collection_begin(id),
                                          storage::collection_end(id)),
                              span.chunks);
    reader.read(span.offset, *piece);
    if (!reader.status().ok()) data.latch_error(reader.status());
    lay_over(patches, span, *piece);
    span.offset += piece->size();
    span.bytes -= piece->size();
    return span.bytes != 0;
  };
}

// By number, of those that the engine does not have yet.
std::map<uint32_t, std::string> uncommitted_chunks(storage::Reader& data,
                                                   const types::StringChunks& chunks) {
  const storage::CollectionId id = chunks.id;
  std::map<uint32_t, std::string> found;
  data.uncommitted(storage::Space::kData, storage::collection_begin(id),
                   storage::collection_end(id), [&](std::string_view key, std::string_view value) {
                     std::string_view bytes;
                     if (!chunks.decode(value, &bytes)) return;
                     found.emplace(storage::read_be32(key.substr(sizeof(id))), bytes);
                   });
  return found;
}

}  // namespace

std::unique_ptr<net::BodySource> stream_string(Services& services, types::KeyReader& keys,
                                               std::shared_ptr<const View> view,
                                               const StringSpan& span, const Frame& frame) {
  std::map<uint32_t, std::string> patches;
  if (view == nullptr) {
    // A probe knows no state to take a view of; a second look-up makes it give up.
    std::string chunk;
    keys.data().get(storage::Space::kData, span.chunks.key_at(0), &chunk);
    if (keys.data().failed()) return nullptr;
    view = services.store.view();
    patches = uncommitted_chunks(keys.data(), span.chunks);
  }
  PieceSource::Read read = read_span(span, std::move(patches));
  if (frame) read = frame(std::move(read));
  return std::make_unique<PieceSource>(services, std::move(view), std::move(read));
}

}  // namespace ingot::data
