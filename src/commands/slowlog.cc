// SLOWLOG: the commands that took longest.
#include <limits>
#include <span>
#include <string>

#include "src/commands/families.h"
#include "src/contract/help.h"
#include "src/metrics/stats.h"

namespace ingot::commands {
namespace {

constexpr size_t kShown = 10;

void slowlog_get(SessionContext& ctx, Args args) {
  if (args.size() > 3) {
    return ctx.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                           std::string(args[1]) + "'. Try SLOWLOG HELP.");
  }
  size_t count = kShown;
  if (args.size() == 3) {
    ArgReader reader(args, 2);
    const int64_t wanted = reader.integer_between(
        -1, std::numeric_limits<int64_t>::max(), "ERR count should be greater than or equal to -1");
    if (reader.failed()) return ctx.reply.error(reader.error());
    count = wanted < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(wanted);
  }
  const auto entries = ctx.server.stats().slow_log.latest(count);
  ctx.reply.array(entries.size());
  for (const auto& entry : entries) {
    ctx.reply.array(6);
    ctx.reply.integer(static_cast<int64_t>(entry->id));
    ctx.reply.integer(entry->at_s);
    ctx.reply.integer(entry->micros);
    ctx.reply.array(entry->args.size());
    for (const std::string& arg : entry->args) ctx.reply.bulk(arg);
    ctx.reply.bulk(entry->address);
    ctx.reply.bulk(entry->client_name);
  }
}

void slowlog_len(SessionContext& ctx, Args) {
  ctx.reply.integer(static_cast<int64_t>(ctx.server.stats().slow_log.size()));
}

void slowlog_reset(SessionContext& ctx, Args) {
  ctx.server.stats().slow_log.clear();
  ctx.reply.ok();
}

void slowlog_help(SessionContext& ctx, Args) {
  contract::reply_help(ctx.reply, "SLOWLOG",
                       {"GET [<count>]",
                        "    Return top <count> entries from the slowlog (default: 10, -1 mean "
                        "all).",
                        "    Entries are made of:",
                        "    id, timestamp, time in microseconds, arguments array, client IP and "
                        "port,",
                        "    client name", "LEN", "    Return the length of the slowlog.", "RESET",
                        "    Reset the slowlog."});
}

constexpr uint32_t kSlowlogFlags = flag::kAdmin | flag::kLoading | flag::kStale;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "get",
     .arity = -2,
     .flags = kSlowlogFlags,
     .since = "2.2.12",
     .complexity = "O(N) with N entries asked for",
     .summary = "The latest slow commands",
     .history = "4.0.0: Client's address and name.",
     .tips = "request_policy:all_nodes,nondeterministic_output",
     .arguments = "count:integer?",
     .handler = slowlog_get},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "What the subcommands do",
     .handler = slowlog_help},
    {.name = "len",
     .arity = 2,
     .flags = kSlowlogFlags,
     .since = "2.2.12",
     .complexity = "O(1)",
     .summary = "How many slow commands are kept",
     .tips = "request_policy:all_nodes,response_policy:agg_sum,nondeterministic_output",
     .handler = slowlog_len},
    {.name = "reset",
     .arity = 2,
     .flags = kSlowlogFlags,
     .since = "2.2.12",
     .complexity = "O(N) with N entries kept",
     .summary = "Forget the slow commands",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .handler = slowlog_reset},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "slowlog",
     .arity = -2,
     .since = "2.2.12",
     .complexity = "Depends on subcommand.",
     .summary = "Commands that took long",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> slowlog_rows() {
  return kRows;
}

}  // namespace ingot::commands
