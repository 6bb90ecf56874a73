// Streaming a string; see string_source.h.
#include "src/types/string_source.h"

#include <algorithm>
#include <cstring>

#include "src/exec/reader_pool.h"
#include "src/types/string_value.h"

namespace ingot::types {

using storage::kStringChunkBytes;

namespace {

constexpr uint64_t kPieceBytes = 256 << 10;
static_assert(kPieceBytes % kStringChunkBytes == 0);

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

// The next piece, up to a chunk's border; nothing when it cannot be read.
std::optional<std::string> read_piece(storage::Engine& engine, StringSource::Span& span) {
  const uint64_t piece_end = (span.offset / kStringChunkBytes) * kStringChunkBytes + kPieceBytes;
  std::string piece(std::min(span.bytes, piece_end - span.offset), '\0');
  auto cursor =
      engine.new_cursor(storage::Space::kData, {.snapshot = span.view->snapshot(),
                                                .lower = storage::collection_begin(span.id),
                                                .upper = storage::collection_end(span.id),
                                                .fill_cache = false});
  ChunkReader reader(std::move(cursor), span.id);
  reader.read(span.offset, piece);
  if (!reader.status().ok()) return std::nullopt;
  lay_over(span.patches, span.offset, piece);
  span.offset += piece.size();
  span.bytes -= piece.size();
  return piece;
}

}  // namespace

StringSource::StringSource(exec::Services& services, Span span)
    : services_(services),
      view_created_ms_(span.view->created_ms()),
      span_(std::make_shared<Span>(std::move(span))) {}

void StringSource::next(net::IoThread& thread,
                        std::move_only_function<void(std::optional<std::string>)> done) {
  if (span_->bytes == 0) return done("");
  if (expired()) return done(std::nullopt);
  services_.readers.submit([&engine = services_.store.engine(), &thread, span = span_,
                            done = std::move(done)]() mutable {
    auto piece = read_piece(engine, *span);
    // The view goes before the client has the last piece.
    if (span->bytes == 0) span->view.reset();
    thread.post(
        [piece = std::move(piece), done = std::move(done)]() mutable { done(std::move(piece)); });
  });
}

bool StringSource::expired() {
  return services_.store.now_ms() - view_created_ms_ > kViewAgeMaxMs;
}

}  // namespace ingot::types
