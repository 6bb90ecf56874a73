// The thread's random generator, and draws that are streamed when there are many.
#include "src/commands/chance.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ingot::commands {
namespace {

constexpr uint64_t kDrawnAtOnce = 32;

}  // namespace

Random& dice() {
  thread_local Random random{std::random_device{}()};
  return random;
}

std::unique_ptr<net::BodySource> stream_draws(contract::ReadContext& ctx, uint64_t count,
                                              Draw draw) {
  // What is drawn again and again is worth caching.
  return std::make_unique<data::PieceSource>(
      ctx.data, ctx.view,
      [left = count, draw = std::move(draw), version = ctx.reply.version()](
          storage::Reader& data, std::string* piece) mutable {
        contract::EncodedReply encoded;
        contract::RespSink sink(encoded, version);
        while (left > 0 && encoded.bytes.size() < data::kPieceBytes && !data.failed()) {
          const uint64_t now = std::min(left, kDrawnAtOnce);
          draw(data, now, sink);
          left -= now;
        }
        *piece = std::move(encoded.bytes);
        return left > 0;
      },
      storage::CacheUse::kFill);
}

}  // namespace ingot::commands
