// EVAL EVALSHA EVAL_RO EVALSHA_RO: scripts of the client's own. Those that read only run in the
// pool, at a view.
#include <memory>
#include <string>
#include <utility>

#include "src/commands/families.h"
#include "src/commands/run_script.h"

namespace ingot::commands {
namespace {

using ScriptPtr = std::shared_ptr<const script::Script>;

enum class Mode : uint8_t { kAny, kReadOnly };

// `is_new`: it is not among those that are kept.
template <typename Context>
void run_script(Context& ctx, const ScriptPtr& script, const ScriptArgs& args, Mode mode,
                bool is_new) {
  uint32_t flags = script->flags;
  if (!may_begin(ctx, flags, script->declares)) return;
  if (mode == Mode::kReadOnly) {
    if (script->declares && (flags & script::flag::kNoWrites) == 0) {
      return ctx.reply.error(script::kReadOnlyRefused);
    }
    flags |= script::flag::kNoWrites;
  }
  run_leased(ctx, {.kind = script::LuaHost::Kind::kScripts}, args, flags,
             [&](script::LuaHost& host, const script::Invocation& invocation) {
               if (is_new) {
                 const std::string error = host.compile(*script);
                 if (!error.empty()) {
                   ctx.reply.error(error);
                   return true;
                 }
                 // One that finds no room is only forgotten.
                 (void)ctx.scripts.add(script);
               }
               return host.run(*script, invocation);
             });
}

template <typename Context>
void run_given(Context& ctx, Args args, Mode mode) {
  const auto parsed = script_args(ctx.reply, args, contract::error::kNotInteger);
  if (!parsed) return;
  ScriptPtr script = ctx.scripts.find(script::sha1_hex(args[1]));
  const bool is_new = script == nullptr;
  if (is_new) {
    std::string error;
    script = script::read_script(args[1], &error);
    if (script == nullptr) return ctx.reply.error(error);
  }
  run_script(ctx, script, *parsed, mode, is_new);
}

template <typename Context>
void run_named(Context& ctx, Args args, Mode mode) {
  constexpr size_t kShaDigits = 40;
  if (args[1].size() != kShaDigits) return ctx.reply.error(script::kNoScript);
  const auto parsed = script_args(ctx.reply, args, contract::error::kNotInteger);
  if (!parsed) return;
  const ScriptPtr script = ctx.scripts.find(args[1]);
  if (script == nullptr) return ctx.reply.error(script::kNoScript);
  run_script(ctx, script, *parsed, mode, /*is_new=*/false);
}

void eval(WriteContext& ctx, Args args) {
  run_given(ctx, args, Mode::kAny);
}
void eval_reading(ReadContext& ctx, Args args) {
  run_given(ctx, args, Mode::kAny);
}
void eval_ro(ReadContext& ctx, Args args) {
  run_given(ctx, args, Mode::kReadOnly);
}
void evalsha(WriteContext& ctx, Args args) {
  run_named(ctx, args, Mode::kAny);
}
void evalsha_reading(ReadContext& ctx, Args args) {
  run_named(ctx, args, Mode::kAny);
}
void evalsha_ro(ReadContext& ctx, Args args) {
  run_named(ctx, args, Mode::kReadOnly);
}

const CommandRow* if_eval_reads(const script::Scripts& scripts, Args args);
const CommandRow* if_evalsha_reads(const script::Scripts& scripts, Args args);

constexpr uint32_t kScriptFlags = flag::kNoScript | flag::kStale | flag::kSkipMonitor |
                                  flag::kNoMandatoryKeys | flag::kMovableKeys;

constexpr uint32_t kWritten = key::kRw | key::kAccess | key::kUpdate;
constexpr uint32_t kRead = key::kRo | key::kAccess;

constexpr CommandRow kTable[] = {
    {.name = "eval",
     .arity = -3,
     .flags = kScriptFlags | flag::kMayReplicate,
     .keys = {keys_of_script(kWritten, "What the script does with its keys nobody can tell")},
     .since = "2.6.0",
     .complexity = "That of the script",
     .summary = "Run a script in Lua",
     .arguments = "script:string numkeys:integer key:key#0?* arg:string?*",
     .handler = eval,
     .runs_script = true,
     .if_script_reads = if_eval_reads},
    {.name = "eval_ro",
     .arity = -3,
     .flags = kScriptFlags | flag::kReadonly,
     .keys = {keys_of_script(kRead, "What the script does with its keys nobody can tell")},
     .since = "7.0.0",
     .complexity = "That of the script",
     .summary = "Run a script in Lua that writes nothing",
     .arguments = "script:string numkeys:integer key:key#0?* arg:string?*",
     .handler = eval_ro,
     .scans = true,
     .runs_script = true},
    {.name = "evalsha",
     .arity = -3,
     .flags = kScriptFlags | flag::kMayReplicate,
     .keys = {keys_of_script(kWritten, {})},
     .since = "2.6.0",
     .complexity = "That of the script",
     .summary = "Run a script that the server has already, by its SHA1",
     .arguments = "sha1:string numkeys:integer key:key#0?* arg:string?*",
     .handler = evalsha,
     .runs_script = true,
     .if_script_reads = if_evalsha_reads},
    {.name = "evalsha_ro",
     .arity = -3,
     .flags = kScriptFlags | flag::kReadonly,
     .keys = {keys_of_script(kRead, {})},
     .since = "7.0.0",
     .complexity = "That of the script",
     .summary = "Run a script that the server has already and that writes nothing",
     .arguments = "sha1:string numkeys:integer key:key#0?* arg:string?*",
     .handler = evalsha_ro,
     .scans = true,
     .runs_script = true},
};
constexpr auto kRows = contract::family(kScriptingFamily, kTable);

constexpr CommandRow kEvalReading = reading_row(kRows[0], eval_reading);
constexpr CommandRow kEvalshaReading = reading_row(kRows[2], evalsha_reading);

const CommandRow* if_eval_reads(const script::Scripts&, Args args) {
  if (!args[1].starts_with("#!")) return nullptr;
  std::string error;
  const auto flags = script::declared_flags(args[1], &error);
  return flags && (*flags & script::flag::kNoWrites) != 0 ? &kEvalReading : nullptr;
}

const CommandRow* if_evalsha_reads(const script::Scripts& scripts, Args args) {
  const ScriptPtr script = scripts.find(args[1]);
  const bool reads = script != nullptr && (script->flags & script::flag::kNoWrites) != 0;
  return reads ? &kEvalshaReading : nullptr;
}

}  // namespace

std::span<const CommandRow> eval_rows() {
  return kRows;
}

}  // namespace ingot::commands
