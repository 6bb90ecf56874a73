// Streaming a range; see range_source.h.
#include "src/types/range_source.h"

#include <utility>

#include "src/exec/reader_pool.h"
#include "src/types/string_source.h"

namespace ingot::types {
namespace {

constexpr size_t kPieceBytes = 128 << 10;

// The next piece; nothing when it cannot be read.
std::optional<std::string> read_piece(storage::Engine& engine, RangeSource::Range& range) {
  auto at = engine.new_cursor(range.space, {.snapshot = range.view->snapshot(),
                                            .lower = range.lower,
                                            .upper = range.upper,
                                            .fill_cache = false});
  std::string piece;
  for (at->seek(range.lower); at->valid() && piece.size() < kPieceBytes; at->next()) {
    range.encode(at->key(), at->value(), &piece);
  }
  if (at->outcome() != storage::Lookup::kFound) return std::nullopt;
  range.ended = !at->valid();
  if (!range.ended) range.lower.assign(at->key());
  return piece;
}

}  // namespace

RangeSource::RangeSource(exec::Services& services, Range range)
    : services_(services),
      view_created_ms_(range.view->created_ms()),
      range_(std::make_shared<Range>(std::move(range))) {}

void RangeSource::next(net::IoThread& thread,
                       std::move_only_function<void(std::optional<std::string>)> done) {
  if (range_->ended) return done("");
  if (expired()) return done(std::nullopt);
  services_.readers.submit([&engine = services_.store.engine(), &thread, range = range_,
                            done = std::move(done)]() mutable {
    auto piece = read_piece(engine, *range);
    // The view goes before the client has the last piece.
    if (range->ended) range->view.reset();
    thread.post(
        [piece = std::move(piece), done = std::move(done)]() mutable { done(std::move(piece)); });
  });
}

bool RangeSource::expired() {
  return services_.store.now_ms() - view_created_ms_ > kViewAgeMaxMs;
}

}  // namespace ingot::types
