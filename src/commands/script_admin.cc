// SCRIPT: the scripts that the server knows by name, and ending the one that runs.
#include <string>

#include "src/commands/families.h"
#include "src/contract/help.h"
#include "src/script/scripts.h"

namespace ingot::commands {
namespace {

void load(SessionContext& ctx, Args args) {
  std::string sha;
  const std::string error = ctx.scripts.keep(args[2], &sha);
  error.empty() ? ctx.reply.bulk(sha) : ctx.reply.error(error);
}

void exists(SessionContext& ctx, Args args) {
  ctx.reply.array(args.size() - 2);
  for (const std::string_view sha : args.subspan(2)) {
    ctx.reply.integer(ctx.scripts.find(sha) != nullptr);
  }
}

void flush(SessionContext& ctx, Args args) {
  const bool fits =
      args.size() == 2 || (args.size() == 3 && (contract::equals_ignore_case(args[2], "sync") ||
                                                contract::equals_ignore_case(args[2], "async")));
  if (!fits) return ctx.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  ctx.scripts.flush();
  ctx.reply.ok();
}

void kill(SessionContext& ctx, Args) {
  const std::string error = ctx.scripts.kill(script::LuaHost::Kind::kScripts);
  error.empty() ? ctx.reply.ok() : ctx.reply.error(error);
}

// Redis' debugger steps through a script in a process of its own.
void debug(SessionContext& ctx, Args args) {
  using contract::equals_ignore_case;
  if (equals_ignore_case(args[2], "no")) {
    ctx.client.debugs_scripts = false;
    return ctx.reply.ok();
  }
  if (equals_ignore_case(args[2], "yes") || equals_ignore_case(args[2], "sync")) {
    ctx.client.debugs_scripts = true;  // redis-cli --ldb sends its script whatever is answered
    return ctx.reply.error("ERR Ingot has no debugger for scripts");
  }
  ctx.reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "SCRIPT",
      {"DEBUG (YES|SYNC|NO)", "    Set the debug mode for subsequent scripts executed.",
       "EXISTS <sha1> [<sha1> ...]",
       "    Return information about the existence of the scripts in the script cache.",
       "FLUSH [ASYNC|SYNC]", "    Flush the Lua scripts cache. Very dangerous on replicas.",
       "    When called without the optional mode argument, the behavior is determined by the",
       "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
       "    * ASYNC: Asynchronously flush the scripts cache.",
       "    * SYNC: Synchronously flush the scripts cache.", "KILL",
       "    Kill the currently executing Lua script.", "LOAD <script>",
       "    Load a script into the scripts cache without executing it."});
}

constexpr std::string_view kOnAllNodes = "request_policy:all_nodes,response_policy:all_succeeded";

constexpr CommandRow kSubcommandTable[] = {
    {.name = "debug",
     .arity = 3,
     .flags = flag::kNoScript,
     .since = "3.2.0",
     .complexity = "O(1)",
     .summary = "Whether scripts are debugged: there is only no",
     .arguments = "mode:oneof(yes:pure-token=YES sync:pure-token=SYNC no:pure-token=NO)",
     .handler = debug},
    {.name = "exists",
     .arity = -3,
     .flags = flag::kNoScript,
     .since = "2.6.0",
     .complexity = "O(N), N being the scripts asked for",
     .summary = "Which of these scripts the server has",
     .tips = "request_policy:all_shards,response_policy:agg_logical_and",
     .arguments = "sha1:string*",
     .handler = exists},
    {.name = "flush",
     .arity = -2,
     .flags = flag::kNoScript,
     .since = "2.6.0",
     .complexity = "O(N), N being the scripts",
     .summary = "Forget all scripts",
     .history = "6.2.0: The modes `ASYNC` and `SYNC`.",
     .tips = kOnAllNodes,
     .arguments = "async:oneof@6.2.0?(async:pure-token=ASYNC sync:pure-token=SYNC)",
     .handler = flush},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "kill",
     .arity = 2,
     .flags = flag::kNoScript | flag::kAllowBusy,
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "End the script that runs",
     .tips = "request_policy:all_shards,response_policy:one_succeeded",
     .handler = kill,
     .immediate = true},
    {.name = "load",
     .arity = 3,
     .flags = flag::kNoScript | flag::kStale,
     .since = "2.6.0",
     .complexity = "O(N), N being the bytes of the script",
     .summary = "Make a script known to the server",
     .tips = kOnAllNodes,
     .arguments = "script:string",
     .handler = load,
     .offload = true},
};
constexpr auto kSubcommands = contract::family(kScriptingFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "script",
     .arity = -2,
     .since = "2.6.0",
     .complexity = "That of the subcommand",
     .summary = "The scripts that the server has",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kScriptingFamily, kTable);

}  // namespace

std::span<const CommandRow> script_rows() {
  return kRows;
}

}  // namespace ingot::commands
