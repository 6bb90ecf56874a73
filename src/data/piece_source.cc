// The hand-over between the pool, which reads pieces, and the connection, which takes them.
#include "src/data/piece_source.h"

#include <utility>

namespace ingot::data {
namespace {

constexpr int64_t kViewAgeMaxMs = 5 * 60 * 1000;

}  // namespace

PieceSource::PieceSource(Services& services, std::shared_ptr<const View> view, Read read, Use use)
    : services_(services),
      view_created_ms_(view->created_ms()),
      work_(use.work),
      state_(new State{.view = std::move(view), .read = std::move(read), .cache = use.cache}) {}

PieceSource::~PieceSource() {
  state_->abandoned = true;
}

// Nothing when it cannot be read.
std::optional<std::string> PieceSource::read_piece(storage::Engine& engine, State& state) {
  storage::EngineReader data(engine, state.view->snapshot(), storage::Tier::kDisk, state.cache);
  data.stop_when([&state] { return state.abandoned.load(std::memory_order_relaxed); });
  std::string piece;
  const bool more = state.read(data, &piece);
  if (data.failed()) return std::nullopt;
  // The view goes before the client has the last piece.
  if (!more) {
    state.read = {};
    state.view.reset();
  }
  return piece;
}

void PieceSource::next(net::IoThread& thread,
                       std::move_only_function<void(std::optional<std::string>)> done) {
  if (!state_->view) return done("");
  if (expired()) return done(std::nullopt);
  services_.readers.submit(
      [&engine = services_.store.engine(), &thread, state = state_,
       done = std::move(done)]() mutable {
        auto piece = read_piece(engine, *state);
        thread.post([piece = std::move(piece), done = std::move(done)]() mutable {
          done(std::move(piece));
        });
      },
      work_);
}

bool PieceSource::expired() {
  return services_.store.now_ms() - view_created_ms_ > kViewAgeMaxMs;
}

PieceSource::Read read_range(RecordRange range, EncodeRecord encode) {
  return [range = std::move(range), encode = std::move(encode)](storage::Reader& data,
                                                                std::string* piece) mutable {
    const auto at = data.cursor(range.space, range.lower, range.upper);
    range.reverse ? at->seek_for_prev(range.upper) : at->seek(range.lower);
    for (; at->valid() && piece->size() < kPieceBytes; range.reverse ? at->prev() : at->next()) {
      encode(at->key(), at->value(), piece);
    }
    data.check(*at);
    if (!at->valid()) return false;
    (range.reverse ? range.upper : range.lower).assign(at->key());
    if (range.reverse) range.upper.push_back('\0');
    return true;
  };
}

std::shared_ptr<const View> latest_view(Services& services) {
  return services.store.view();
}

}  // namespace ingot::data
