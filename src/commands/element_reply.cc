// See element_reply.h.
#include "src/commands/element_reply.h"

#include <memory>
#include <utility>

#include "src/types/range_source.h"

namespace ingot::commands {
namespace {

// Fewer take less than some hundred microseconds and 100 KB, wherever the command runs.
constexpr uint64_t kStreamedFrom = 512;

}  // namespace

void reply_elements(command::ReadContext& ctx, storage::Space space, std::string lower,
                    std::string upper, uint64_t count, WriteElement write) {
  if (count < kStreamedFrom || !ctx.view) {
    if (count >= kStreamedFrom && !ctx.keys.data().begin_walk()) return;
    const auto at = ctx.keys.data().cursor(space, lower, upper);
    for (at->seek(lower); at->valid(); at->next()) write(at->key(), at->value(), ctx.reply);
    return ctx.keys.data().check(*at);
  }
  auto encode = [write = std::move(write), version = ctx.reply.version()](
                    std::string_view key, std::string_view value, std::string* out) {
    command::EncodedReply piece;
    command::RespSink sink(piece, version);
    write(key, value, sink);
    out->append(piece.bytes);
  };
  ctx.reply.elements(std::make_unique<types::RangeSource>(
      ctx.services, types::RangeSource::Range{.view = ctx.view,
                                              .space = space,
                                              .lower = std::move(lower),
                                              .upper = std::move(upper),
                                              .encode = std::move(encode)}));
}

}  // namespace ingot::commands
