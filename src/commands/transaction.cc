// MULTI, EXEC, DISCARD, WATCH, UNWATCH. Queueing and EXEC itself are the session's; the marks of
// WATCH are the writer's.
#include "src/commands/families.h"

namespace ingot::commands {
namespace {

void multi(SessionContext& context, Args) {
  if (context.client.in_multi) return context.reply.error("ERR MULTI calls can not be nested");
  context.client.in_multi = true;
  context.client.multi_failed = false;
  context.client.queued = 0;
  context.reply.ok();
}

void discard(SessionContext& context, Args) {
  contract::Client& client = context.client;
  if (!client.in_multi) return context.reply.error("ERR DISCARD without MULTI");
  client.in_multi = false;
  client.multi_failed = client.unwatched = false;
  client.queue.clear();
  client.queued = -1;
  context.server.unwatch(client.id);
  context.reply.ok();
}

void watch(WriteContext& context, Args args) {
  for (std::string_view key : args.subspan(1)) {
    context.keys.effects().watched.push_back(
        {.db = context.db,
         .key = std::string(key),
         .expired = context.keys.has_expired(context.db, key)});
  }
  context.reply.ok();
}

void unwatch(WriteContext& context, Args) {
  context.keys.effects().unwatch = true;
  context.reply.ok();
}

constexpr uint32_t kFlags =
    flag::kNoScript | flag::kLoading | flag::kStale | flag::kFast | flag::kAllowBusy;

constexpr CommandRow kTable[] = {
    {.name = "discard",
     .arity = 1,
     .flags = kFlags,
     .since = "2.0.0",
     .complexity = "O(N) in the commands that were queued",
     .summary = "Give up the open transaction",
     .handler = discard},
    {.name = "exec",
     .arity = 1,
     .flags = flag::kNoScript | flag::kLoading | flag::kStale | flag::kSkipSlowlog,
     .since = "1.2.0",
     .complexity = "That of the queued commands",
     .summary = "Run the queued commands as one",
     .handler = contract::Control::kExec},
    {.name = "multi",
     .arity = 1,
     .flags = kFlags,
     .since = "1.2.0",
     .complexity = "O(1)",
     .summary = "Begin to queue commands for EXEC",
     .handler = multi,
     .immediate = true},
    {.name = "unwatch",
     .arity = 1,
     .flags = kFlags,
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Watch no key any more",
     .handler = unwatch},
    {.name = "watch",
     .arity = -2,
     .flags = kFlags,
     .keys = {contract::keys_between(1, -1, 1, contract::key::kRo)},
     .since = "2.2.0",
     .complexity = "O(1) for each key",
     .summary = "Let the next EXEC run only if none of these keys changes before",
     .arguments = "key:key#0*",
     .handler = watch},
};
constexpr auto kRows = contract::family(kTransactionsFamily, kTable);

}  // namespace

std::span<const CommandRow> transaction_rows() {
  return kRows;
}

}  // namespace ingot::commands
