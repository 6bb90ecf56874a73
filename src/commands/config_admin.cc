// CONFIG: reading and changing the settings.
#include "src/settings/config.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/families.h"

namespace ingot::commands {
namespace {

void config_get(SessionContext& context, Args args) {
  const auto pairs = context.config.get(args.subspan(2));
  context.reply.map(pairs.size());
  for (const auto& [name, value] : pairs) {
    context.reply.bulk(name);
    context.reply.bulk(value);
  }
}

void config_set(SessionContext& context, Args args) {
  if (args.size() % 2 != 0) return context.reply.error(contract::error::kSyntax);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (size_t i = 2; i < args.size(); i += 2) pairs.emplace_back(args[i], args[i + 1]);
  if (const auto error = context.config.set(pairs, context.client.is_local())) {
    return context.reply.error(*error);
  }
  context.reply.ok();
}

void config_rewrite(SessionContext& context, Args) {
  if (const auto error = context.config.rewrite()) return context.reply.error(*error);
  context.reply.ok();
}

void config_resetstat(SessionContext& context, Args) {
  context.server.reset_statistics();
  context.reply.ok();
}

void config_help(SessionContext& context, Args) {
  static constexpr std::string_view kLines[] = {
      "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "GET <pattern>",
      "    Return parameters matching the glob-like <pattern> and their values.",
      "SET <directive> <value>",
      "    Set the configuration <directive> to <value>.",
      "RESETSTAT",
      "    Reset statistics reported by the INFO command.",
      "REWRITE",
      "    Rewrite the configuration file.",
      "HELP",
      "    Prints this help.",
  };
  context.reply.array(std::size(kLines));
  for (const std::string_view line : kLines) context.reply.simple(line);
}

constexpr uint32_t kFlags = contract::flag::kAdmin | contract::flag::kNoScript |
                            contract::flag::kLoading | contract::flag::kStale;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "get",
     .arity = -3,
     .flags = kFlags,
     .since = "2.0.0",
     .complexity = "O(N) when N is the number of configuration parameters provided",
     .summary = "Get the values of configuration parameters",
     .history = "7.0.0: Takes several patterns.",
     .arguments = "parameter:block*(parameter:string)",
     .handler = config_get},
    {.name = "set",
     .arity = -4,
     .flags = kFlags,
     .since = "2.0.0",
     .complexity = "O(N) when N is the number of configuration parameters provided",
     .summary = "Set configuration parameters to the given values",
     .history = "7.0.0: Sets several parameters.",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .arguments = "parameter_value:block*(parameter:string value:string)",
     .handler = config_set},
    {.name = "rewrite",
     .arity = 2,
     .flags = kFlags,
     .since = "2.8.0",
     .complexity = "O(1)",
     .summary = "Rewrite the configuration file with the in memory configuration",
     .handler = config_rewrite,
     .offload = true},
    {.name = "resetstat",
     .arity = 2,
     .flags = kFlags,
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "Reset the stats returned by INFO",
     .handler = config_resetstat},
    {.name = "help",
     .arity = 2,
     .flags = contract::flag::kLoading | contract::flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Show helpful text about the different subcommands",
     .handler = config_help},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "config",
     .arity = -2,
     .since = "2.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "A container for server configuration commands",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> config_rows() {
  return kRows;
}

}  // namespace ingot::commands
