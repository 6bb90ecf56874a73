// The thread's random generator, and draws that are streamed when there are many.
#include "src/commands/chance.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "src/contract/args.h"

namespace ingot::commands {
namespace {

constexpr uint64_t kDrawnAtOnce = 32;

}  // namespace

std::optional<DrawRequest> read_draw_request(contract::ReplySink& reply, contract::Args args,
                                             std::string_view word) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  DrawRequest request;
  contract::ArgReader reader(args, 2);
  if (!reader.more()) return request;
  request.one = false;
  request.count = reader.integer();
  if (request.count < -kMax) {
    reader.fail(
        "ERR value is out of range, value must between -9223372036854775807 and "
        "9223372036854775807");
  }
  if (reader.more()) {
    request.with_values = reader.word(word);
    // Each element is two in the reply.
    const bool fits = request.count >= -kMax / 2 && request.count <= kMax / 2;
    if (reader.done() && !fits) reader.fail("ERR value is out of range");
  }
  if (!reader.failed()) return request;
  reply.error(reader.error());
  return std::nullopt;
}

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
      data::PieceSource::Use{.cache = storage::CacheUse::kFill});
}

}  // namespace ingot::commands
