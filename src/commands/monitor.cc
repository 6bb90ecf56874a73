// MONITOR: a client that hears of every command.
#include <span>

#include "src/commands/families.h"
#include "src/contract/channels.h"

namespace ingot::commands {
namespace {

void hear_commands(SessionContext& ctx, Args) {
  if (ctx.in_exec) {
    return ctx.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  if (ctx.client.is_monitor()) return;  // as in Redis there is no second answer
  ctx.channels.subscribe(ctx.client, contract::ChannelKind::kMonitor, "");
  ctx.reply.ok();
}

constexpr CommandRow kTable[] = {
    {.name = "monitor",
     .arity = 1,
     .flags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale,
     .since = "1.0.0",
     .complexity = contract::kNoComplexity,
     .summary = "Hear of every command that the server runs",
     .handler = hear_commands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> monitor_rows() {
  return kRows;
}

}  // namespace ingot::commands
