// See blocking.h.
#include "src/commands/blocking.h"

#include <cmath>
#include <limits>

#include "src/command/args.h"

namespace ingot::commands {

std::optional<int64_t> wait_until(command::WriteContext& ctx, std::string_view seconds) {
  const auto given = command::parse_long_double(seconds);
  if (!given) {
    ctx.reply.error("ERR timeout is not a float or out of range");
    return std::nullopt;
  }
  const long double wait_ms = std::ceil(*given * 1000);
  const int64_t left_ms = std::numeric_limits<int64_t>::max() - ctx.now_ms();
  if (wait_ms > static_cast<long double>(std::numeric_limits<int64_t>::max())) {
    ctx.reply.error("ERR timeout is out of range");
    return std::nullopt;
  }
  if (wait_ms < 0) {
    ctx.reply.error("ERR timeout is negative");
    return std::nullopt;
  }
  if (wait_ms == 0) return 0;
  if (wait_ms > static_cast<long double>(left_ms)) {
    ctx.reply.error("ERR timeout is out of range");
    return std::nullopt;
  }
  return ctx.now_ms() + static_cast<int64_t>(wait_ms);
}

std::optional<int64_t> wait_until_ms(command::WriteContext& ctx, std::string_view milliseconds) {
  const auto wait_ms = command::parse_integer(milliseconds);
  if (!wait_ms) {
    ctx.reply.error("ERR timeout is not an integer or out of range");
  } else if (*wait_ms < 0) {
    ctx.reply.error("ERR timeout is negative");
  } else if (*wait_ms > std::numeric_limits<int64_t>::max() - ctx.now_ms()) {
    ctx.reply.error("ERR timeout is out of range");
  }
  if (ctx.reply.erred()) return std::nullopt;
  return *wait_ms == 0 ? 0 : ctx.now_ms() + *wait_ms;
}

void wait_for(command::WriteContext& ctx, command::Args keys, int64_t until_ms,
              void (*timed_out)(command::ReplySink&), std::string memory) {
  if (!ctx.may_block) return timed_out(ctx.reply);
  ctx.block({.keys = {keys.begin(), keys.end()},
             .until_ms = until_ms,
             .timed_out = timed_out,
             .memory = std::move(memory)});
}

}  // namespace ingot::commands
