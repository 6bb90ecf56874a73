// See element_reply.h.
#include "src/commands/element_reply.h"

#include <memory>
#include <utility>

#include "src/types/piece_source.h"

namespace ingot::commands {
namespace {

// Fewer take less than some hundred microseconds and 100 KB, wherever the command runs.
constexpr uint64_t kStreamedFrom = 512;

}  // namespace

void reply_elements(command::ReadContext& ctx, types::RecordRange range, uint64_t count,
                    WriteElement write) {
  if (count < kStreamedFrom || !ctx.view) {
    if (count >= kStreamedFrom && !ctx.keys.data().begin_walk()) return;
    const auto at = ctx.keys.data().cursor(range.space, range.lower, range.upper);
    range.reverse ? at->seek_for_prev(range.upper) : at->seek(range.lower);
    for (; at->valid(); range.reverse ? at->prev() : at->next()) {
      write(at->key(), at->value(), ctx.reply);
    }
    return ctx.keys.data().check(*at);
  }
  auto encode = [write = std::move(write), version = ctx.reply.version()](
                    std::string_view key, std::string_view value, std::string* out) {
    command::EncodedReply piece;
    command::RespSink sink(piece, version);
    write(key, value, sink);
    out->append(piece.bytes);
  };
  ctx.reply.elements(std::make_unique<types::PieceSource>(
      ctx.services, ctx.view, types::read_range(std::move(range), std::move(encode))));
}

}  // namespace ingot::commands
