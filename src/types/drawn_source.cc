// See drawn_source.h.
#include "src/types/drawn_source.h"

#include <algorithm>
#include <utility>

#include "src/exec/reader_pool.h"
#include "src/types/string_source.h"
#include "storage/reader.h"

namespace ingot::types {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr uint64_t kDrawnAtOnce = 32;

}  // namespace

DrawnSource::DrawnSource(exec::Services& services, std::shared_ptr<const exec::View> view,
                         uint64_t count, Draw draw, int version)
    : services_(services),
      view_created_ms_(view->created_ms()),
      state_(std::make_shared<State>(
          State{.view = view, .left = count, .draw = std::move(draw), .version = version})) {}

// Nothing when the elements cannot be read.
std::optional<std::string> DrawnSource::draw_piece(storage::Engine& engine, State& state) {
  storage::EngineReader data(engine, state.view->snapshot(), storage::Tier::kDisk);
  command::EncodedReply piece;
  command::RespSink sink(piece, state.version);
  while (state.left > 0 && piece.bytes.size() < kPieceBytes) {
    const uint64_t count = std::min(state.left, kDrawnAtOnce);
    state.draw(data, count, sink);
    if (data.failed()) return std::nullopt;
    state.left -= count;
  }
  return std::move(piece.bytes);
}

void DrawnSource::next(net::IoThread& thread,
                       std::move_only_function<void(std::optional<std::string>)> done) {
  if (state_->left == 0) return done("");
  if (expired()) return done(std::nullopt);
  services_.readers.submit([&engine = services_.store.engine(), &thread, state = state_,
                            done = std::move(done)]() mutable {
    auto piece = draw_piece(engine, *state);
    // The view goes before the client has the last piece.
    if (state->left == 0) state->view.reset();
    thread.post(
        [piece = std::move(piece), done = std::move(done)]() mutable { done(std::move(piece)); });
  });
}

bool DrawnSource::expired() {
  return services_.store.now_ms() - view_created_ms_ > kViewAgeMaxMs;
}

}  // namespace ingot::types
