// MODULE: there are none, and none can be loaded.
#include "src/commands/families.h"
#include "src/contract/help.h"

namespace ingot::commands {
namespace {

void list_modules(SessionContext& ctx, Args) {
  ctx.reply.array(0);
}

// Modules are code for Redis' own address space.
void load_module(SessionContext& ctx, Args) {
  ctx.reply.error("ERR Error loading the extension. Please check the server logs.");
}

void unload_module(SessionContext& ctx, Args) {
  ctx.reply.error("ERR Error unloading module: no such module with that name");
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "MODULE",
      {"LIST", "    Return a list of loaded modules.", "LOAD <path> [<arg> ...]",
       "    Load a module library from <path>, passing to it any optional arguments.",
       "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
       "    Load a module library from <path>, while passing it module configurations and optional "
       "arguments.",
       "UNLOAD <name>", "    Unload a module."});
}

constexpr uint32_t kLoadsModules = flag::kAdmin | flag::kNoScript | flag::kNoAsyncLoading;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "list",
     .arity = 2,
     .flags = flag::kAdmin | flag::kNoScript,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "The modules that are loaded: none",
     .tips = "nondeterministic_output_order",
     .handler = list_modules},
    {.name = "load",
     .arity = -3,
     .flags = kLoadsModules,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Fails: modules are for Redis' own address space",
     .arguments = "path:string arg:string?*",
     .handler = load_module,
     .guard = contract::Guard::kModules},
    {.name = "loadex",
     .arity = -3,
     .flags = kLoadsModules,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "Fails, as MODULE LOAD does",
     .arguments = "path:string configs:block=CONFIG?*+(name:string value:string) "
                  "args:block=ARGS?*(arg:string)",
     .handler = load_module,
     .guard = contract::Guard::kModules},
    {.name = "unload",
     .arity = 3,
     .flags = kLoadsModules,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Fails: no module is loaded",
     .arguments = "name:string",
     .handler = unload_module,
     .guard = contract::Guard::kModules},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "module",
     .arity = -2,
     .since = "4.0.0",
     .complexity = "That of the subcommand",
     .summary = "Modules, of which there are none",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> module_rows() {
  return kRows;
}

}  // namespace ingot::commands
