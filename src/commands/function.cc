// FCALL, FCALL_RO and FUNCTION: libraries of functions. Their code stands in the engine; which
// there are is an effect of the unit that changes them until that is committed.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/run_script.h"
#include "src/contract/errors.h"
#include "src/contract/glob.h"
#include "src/contract/help.h"
#include "src/script/stored_libraries.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"

namespace ingot::commands {
namespace {

using script::Libraries;
using script::Library;
using LibrariesPtr = std::shared_ptr<const Libraries>;
using LibraryPtr = std::shared_ptr<const Library>;

// As this command sees them.
LibrariesPtr libraries_of(WriteContext& ctx) {
  const LibrariesPtr& changed = ctx.keys.effects().libraries;
  return changed ? changed : ctx.scripts.libraries();
}
LibrariesPtr libraries_of(ReadContext& ctx) {
  return ctx.libraries ? ctx.libraries : ctx.scripts.libraries();
}
LibrariesPtr libraries_of(SessionContext& ctx) {
  const bool changed = ctx.in_group != nullptr && ctx.in_group->libraries;
  return changed ? ctx.in_group->libraries : ctx.scripts.libraries();
}

// Makes them those of everybody once the unit is committed, and stores what has changed.
void change_libraries(WriteContext& ctx, const LibrariesPtr& after) {
  script::change_stored(ctx.keys, *libraries_of(ctx), after);
  ++ctx.keys.effects().changes;
}

// --- FCALL

constexpr std::string_view kBadKeyCount = "ERR Bad number of keys provided";

enum class Mode : uint8_t { kAny, kReadOnly };

template <typename Context>
void call_function(Context& ctx, Args args, Mode mode) {
  const Libraries::Found found = libraries_of(ctx)->find(args[1]);
  if (found.function == nullptr) return ctx.reply.error("ERR Function not found");
  const auto parsed = script_args(ctx.reply, args, kBadKeyCount);
  if (!parsed) return;
  const bool reads = (found.function->flags & script::flag::kNoWrites) != 0;
  if (!may_begin(ctx, found.function->flags, /*declares=*/true)) return;
  if (mode == Mode::kReadOnly && !reads) return ctx.reply.error(script::kReadOnlyRefused);
  if (std::is_same_v<Context, ReadContext> && !reads) {
    return ctx.reply.error("TRYAGAIN The function was replaced while its call waited");
  }
  run_leased(
      ctx,
      {.kind = script::LuaHost::Kind::kFunctions, .name = found.function->name, .command = args},
      *parsed, found.function->flags,
      [&](script::LuaHost& host, const script::Invocation& invocation) {
        return host.run(found, invocation);
      });
}

void fcall(WriteContext& ctx, Args args) {
  call_function(ctx, args, Mode::kAny);
}
void fcall_reading(ReadContext& ctx, Args args) {
  call_function(ctx, args, Mode::kAny);
}
void fcall_ro(ReadContext& ctx, Args args) {
  call_function(ctx, args, Mode::kReadOnly);
}

// --- changes

// Libraries whose code has run, or why one has not.
struct LoadedLibraries : contract::PoolResult {
  std::vector<LibraryPtr> libraries;
  std::string error;
};

// Runs the code of libraries in the pool: it may take half a second. Null: the run is given up.
std::shared_ptr<LoadedLibraries> load_libraries(WriteContext& ctx, std::vector<std::string> codes) {
  const auto work = [&scripts = ctx.scripts, codes = std::move(codes)](types::KeyReader&) {
    auto loaded = std::make_shared<LoadedLibraries>();
    for (const std::string& code : codes) {
      if (scripts.is_stopped()) loaded->error = "ERR the server is shutting down";
      if (!loaded->error.empty()) break;
      auto library = script::read_library(code, &loaded->error);
      if (library != nullptr) loaded->error = scripts.load(library.get());
      if (!loaded->error.empty()) break;
      loaded->libraries.push_back(std::move(library));
    }
    return loaded;
  };
  return ctx.from_pool<LoadedLibraries>([](const LoadedLibraries&) { return true; }, work,
                                        ctx.in_place);
}

// False, and an error answered, where there are too many for the memory.
bool has_room(WriteContext& ctx, const Libraries& before, const Libraries& after) {
  if (after.bytes() <= std::max(before.bytes(), ctx.scripts.library_bytes_max())) return true;
  ctx.reply.error(contract::kOutOfMemory);
  return false;
}

void load(WriteContext& ctx, Args args) {
  bool replaces = false;
  for (const std::string_view option : args.subspan(2, args.size() - 3)) {
    if (!contract::equals_ignore_case(option, "replace")) {
      return ctx.reply.error("ERR Unknown option given: " + std::string(option));
    }
    replaces = true;
  }
  std::string error;
  const std::shared_ptr<Library> given = script::read_library(args.back(), &error);
  if (given == nullptr) return ctx.reply.error(error);
  const LibrariesPtr before = libraries_of(ctx);
  if (!replaces && before->all().contains(given->name)) {
    return ctx.reply.error("ERR Library '" + given->name + "' already exists");
  }
  const auto loaded = load_libraries(ctx, {std::string(args.back())});
  if (!loaded) return;
  if (!loaded->error.empty()) return ctx.reply.error(loaded->error);
  const LibrariesPtr after = before->with(loaded->libraries.front(), &error);
  if (after == nullptr) return ctx.reply.error(error);
  if (!has_room(ctx, *before, *after)) return;
  change_libraries(ctx, after);
  ctx.reply.bulk(given->name);
}

void delete_library(WriteContext& ctx, Args args) {
  const LibrariesPtr before = libraries_of(ctx);
  if (!before->all().contains(std::string(args[2]))) {
    return ctx.reply.error("ERR Library not found");
  }
  change_libraries(ctx, before->without(args[2]));
  ctx.reply.ok();
}

std::string too_many_arguments(std::string_view subcommand) {
  return "ERR unknown subcommand or wrong number of arguments for '" + std::string(subcommand) +
         "'. Try FUNCTION HELP.";
}

void flush(WriteContext& ctx, Args args) {
  if (args.size() > 3) return ctx.reply.error(too_many_arguments(args[1]));
  if (args.size() == 3 && !contract::equals_ignore_case(args[2], "sync") &&
      !contract::equals_ignore_case(args[2], "async")) {
    return ctx.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  change_libraries(ctx, std::make_shared<Libraries>());
  ctx.reply.ok();
}

constexpr char kLibraryOpcode = '\xf5';  // of an RDB file

// The code of each library in a dump, of so many bytes when unpacked; or nothing when an error was
// answered.
std::optional<std::vector<std::string>> dumped_codes(ReplySink& reply, std::string_view payload,
                                                     uint64_t bytes_max) {
  const auto fail = [&reply](std::string_view error) {
    reply.error(error);
    return std::nullopt;
  };
  if (!types::rdb::payload_intact(payload)) {
    return fail("ERR DUMP payload version or checksum are wrong");
  }
  std::vector<std::string> codes;
  types::rdb::Input input(payload.substr(0, payload.size() - types::rdb::kFooterBytes), bytes_max);
  while (input.left() > 0) {
    uint8_t type = 0;
    if (!input.byte(&type) || type != static_cast<uint8_t>(kLibraryOpcode)) {
      return fail("ERR given type is not a function");
    }
    if (!input.string(&codes.emplace_back())) {
      return fail("ERR Failed loading library data");
    }
  }
  return codes;
}

void restore(WriteContext& ctx, Args args) {
  if (args.size() > 4) return ctx.reply.error(too_many_arguments(args[1]));
  enum class Policy : uint8_t { kAppend, kReplace, kFlush };
  Policy policy = Policy::kAppend;
  if (args.size() == 4) {
    ArgReader reader(args, 3);
    const auto given = reader.choice<Policy>(
        {{"append", Policy::kAppend}, {"replace", Policy::kReplace}, {"flush", Policy::kFlush}});
    if (!given) {
      return ctx.reply.error(
          "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
    }
    policy = *given;
  }
  auto codes = dumped_codes(ctx.reply, args[2], ctx.scripts.library_bytes_max());
  if (!codes) return;
  const auto loaded = load_libraries(ctx, std::move(*codes));
  if (!loaded) return;
  if (!loaded->error.empty()) return ctx.reply.error(loaded->error);
  const LibrariesPtr before = libraries_of(ctx);
  auto after = policy == Policy::kFlush ? std::make_shared<Libraries>()
                                        : std::make_shared<Libraries>(*before);
  for (const LibraryPtr& library : loaded->libraries) {
    if (policy != Policy::kReplace && after->all().contains(library->name)) {
      return ctx.reply.error("ERR Library " + library->name + " already exists");
    }
    std::string error;
    if (!after->put(library, &error)) return ctx.reply.error(error);
  }
  if (!has_room(ctx, *before, *after)) return;
  change_libraries(ctx, after);
  ctx.reply.ok();
}

// --- telling

void dump(SessionContext& ctx, Args) {
  std::string payload;
  const LibrariesPtr libraries = libraries_of(ctx);
  for (const auto& [name, library] : libraries->all()) {
    payload += kLibraryOpcode;
    types::rdb::append_string(&payload, library->code, /*compress=*/true);
  }
  types::rdb::seal_payload(&payload);
  ctx.reply.bulk(payload);
}

void reply_function(ReplySink& reply, const script::Function& function) {
  reply.map(3);
  reply.bulk("name");
  reply.bulk(function.name);
  reply.bulk("description");
  function.description ? reply.bulk(*function.description) : reply.null();
  reply.bulk("flags");
  std::vector<std::string_view> flags;
  for (uint32_t flag = 1; !script::flag_name(flag).empty(); flag <<= 1) {
    if ((function.flags & flag) != 0) flags.push_back(script::flag_name(flag));
  }
  reply.set(flags.size());
  for (const std::string_view flag : flags) reply.simple(flag);
}

void list(SessionContext& ctx, Args args) {
  std::optional<std::string_view> pattern;
  bool with_code = false;
  for (size_t i = 2; i < args.size(); ++i) {
    if (!with_code && contract::equals_ignore_case(args[i], "withcode")) {
      with_code = true;
    } else if (!pattern && contract::equals_ignore_case(args[i], "libraryname")) {
      if (++i == args.size()) {
        return ctx.reply.error("ERR library name argument was not given");
      }
      pattern = args[i];
    } else {
      return ctx.reply.error("ERR Unknown argument " + std::string(args[i]));
    }
  }
  const LibrariesPtr libraries = libraries_of(ctx);
  std::vector<const Library*> found;
  for (const auto& [name, library] : libraries->all()) {
    if (!pattern || contract::glob_matches(*pattern, name, /*ignore_case=*/true)) {
      found.push_back(library.get());
    }
  }
  ctx.reply.array(found.size());
  for (const Library* library : found) {
    ctx.reply.map(with_code ? 4 : 3);
    ctx.reply.bulk("library_name");
    ctx.reply.bulk(library->name);
    ctx.reply.bulk("engine");
    ctx.reply.bulk("LUA");
    ctx.reply.bulk("functions");
    ctx.reply.array(library->functions.size());
    for (const script::Function& function : library->functions) reply_function(ctx.reply, function);
    if (!with_code) continue;
    ctx.reply.bulk("library_code");
    ctx.reply.bulk(library->code);
  }
}

void kill(SessionContext& ctx, Args) {
  const std::string error = ctx.scripts.kill(script::LuaHost::Kind::kFunctions);
  error.empty() ? ctx.reply.ok() : ctx.reply.error(error);
}

void stats(SessionContext& ctx, Args) {
  const auto running = ctx.scripts.running_function();
  if (!running) {
    if (const auto busy = ctx.scripts.busy(ctx.client.id); !busy.empty()) {
      return ctx.reply.error(busy);
    }
  }
  ctx.reply.map(2);
  ctx.reply.bulk("running_script");
  if (!running) {
    ctx.reply.null();
  } else {
    ctx.reply.map(3);
    ctx.reply.bulk("name");
    ctx.reply.bulk(running->name);
    ctx.reply.bulk("command");
    ctx.reply.array(running->command.size());
    for (const std::string& argument : running->command) ctx.reply.bulk(argument);
    ctx.reply.bulk("duration_ms");
    ctx.reply.integer(running->duration_ms);
  }
  const LibrariesPtr libraries = libraries_of(ctx);
  ctx.reply.bulk("engines");
  ctx.reply.map(1);
  ctx.reply.bulk("LUA");
  ctx.reply.map(2);
  ctx.reply.bulk("libraries_count");
  ctx.reply.integer(static_cast<int64_t>(libraries->all().size()));
  ctx.reply.bulk("functions_count");
  ctx.reply.integer(static_cast<int64_t>(libraries->function_count()));
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "FUNCTION",
      {"LOAD [REPLACE] <FUNCTION CODE>",
       "    Create a new library with the given library name and code.",
       "DELETE <LIBRARY NAME>",
       "    Delete the given library.",
       "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
       "    Return general information on all the libraries:",
       "    * Library name",
       "    * The engine used to run the Library",
       "    * Library description",
       "    * Functions list",
       "    * Library code (if WITHCODE is given)",
       "    It also possible to get only function that matches a pattern using LIBRARYNAME "
       "argument.",
       "STATS",
       "    Return information about the current function running:",
       "    * Function name",
       "    * Command used to run the function",
       "    * Duration in MS that the function is running",
       "    If no function is running, return nil",
       "    In addition, returns a list of available engines.",
       "KILL",
       "    Kill the current running function.",
       "FLUSH [ASYNC|SYNC]",
       "    Delete all the libraries.",
       "    When called without the optional mode argument, the behavior is determined by the",
       "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
       "    * ASYNC: Asynchronously flush the libraries.",
       "    * SYNC: Synchronously flush the libraries.",
       "DUMP",
       "    Return a serialized payload representing the current libraries, can be restored using "
       "FUNCTION RESTORE command",
       "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
       "    Restore the libraries represented by the given payload, it is possible to give a "
       "restore policy to",
       "    control how to handle existing libraries (default APPEND):",
       "    * FLUSH: delete all existing libraries.",
       "    * APPEND: appends the restored libraries to the existing libraries. On collision, "
       "abort.",
       "    * REPLACE: appends the restored libraries to the existing libraries, On collision, "
       "replace the old",
       "      libraries with the new libraries (notice that even on this option there is a chance "
       "of failure",
       "      in case of functions name collision with another library)."});
}

constexpr std::string_view kOnAllShards = "request_policy:all_shards,response_policy:all_succeeded";
constexpr uint32_t kChanges = flag::kWrite | flag::kNoScript;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "delete",
     .arity = 3,
     .flags = kChanges,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "Remove a library",
     .tips = kOnAllShards,
     .arguments = "library-name:string",
     .handler = delete_library},
    {.name = "dump",
     .arity = 2,
     .flags = flag::kNoScript,
     .since = "7.0.0",
     .complexity = "O(N), N being the bytes of all libraries",
     .summary = "Answer all libraries as bytes that FUNCTION RESTORE takes",
     .handler = dump},
    {.name = "flush",
     .arity = -2,
     .flags = kChanges,
     .since = "7.0.0",
     .complexity = "O(N), N being the libraries",
     .summary = "Remove all libraries",
     .tips = kOnAllShards,
     .arguments = "async:oneof?(async:pure-token=ASYNC sync:pure-token=SYNC)",
     .handler = flush},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "kill",
     .arity = 2,
     .flags = flag::kNoScript | flag::kAllowBusy,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "End the function that runs",
     .tips = "request_policy:all_shards,response_policy:one_succeeded",
     .handler = kill,
     .immediate = true},
    {.name = "list",
     .arity = -2,
     .flags = flag::kNoScript,
     .since = "7.0.0",
     .complexity = "O(N), N being the functions",
     .summary = "Which libraries there are, and their functions",
     .tips = "nondeterministic_output_order",
     .arguments = "library-name-pattern:string=LIBRARYNAME? withcode:pure-token=WITHCODE?",
     .handler = list},
    {.name = "load",
     .arity = -3,
     .flags = kChanges | flag::kDenyOom,
     .since = "7.0.0",
     .complexity = "That of the library's code",
     .summary = "Make a library of this code",
     .tips = kOnAllShards,
     .arguments = "replace:pure-token=REPLACE? function-code:string",
     .handler = load},
    {.name = "restore",
     .arity = -3,
     .flags = kChanges | flag::kDenyOom,
     .since = "7.0.0",
     .complexity = "O(N), N being the functions of the dump",
     .summary = "Make the libraries of a dump",
     .tips = kOnAllShards,
     .arguments = "serialized-value:string policy:oneof?(flush:pure-token=FLUSH "
                  "append:pure-token=APPEND replace:pure-token=REPLACE)",
     .handler = restore},
    {.name = "stats",
     .arity = 2,
     .flags = flag::kNoScript | flag::kAllowBusy,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "Which function runs, and how many there are",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .handler = stats},
};
constexpr auto kSubcommands = contract::family(kScriptingFamily, kSubcommandTable);

const CommandRow* if_fcall_reads(const script::Scripts& scripts, Args args);

constexpr uint32_t kCallFlags = flag::kNoScript | flag::kStale | flag::kSkipMonitor |
                                flag::kNoMandatoryKeys | flag::kMovableKeys;
constexpr std::string_view kNotes = "What the function does with its keys nobody can tell";

constexpr CommandRow kTable[] = {
    {.name = "fcall",
     .arity = -3,
     .flags = kCallFlags | flag::kMayReplicate,
     .keys = {keys_of_script(key::kRw | key::kAccess | key::kUpdate, kNotes)},
     .since = "7.0.0",
     .complexity = "That of the function",
     .summary = "Call a function of a library",
     .arguments = "function:string numkeys:integer key:key#0?* arg:string?*",
     .handler = fcall,
     .runs_script = true,
     .if_script_reads = if_fcall_reads},
    {.name = "fcall_ro",
     .arity = -3,
     .flags = kCallFlags | flag::kReadonly,
     .keys = {keys_of_script(key::kRo | key::kAccess, kNotes)},
     .since = "7.0.0",
     .complexity = "That of the function",
     .summary = "Call a function of a library that writes nothing",
     .arguments = "function:string numkeys:integer key:key#0?* arg:string?*",
     .handler = fcall_ro,
     .scans = true,
     .runs_script = true},
    {.name = "function",
     .arity = -2,
     .since = "7.0.0",
     .complexity = "That of the subcommand",
     .summary = "The libraries of functions",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kScriptingFamily, kTable);

constexpr CommandRow kReading = reading_row(kRows[0], fcall_reading);

const CommandRow* if_fcall_reads(const script::Scripts& scripts, Args args) {
  const Libraries::Found found = scripts.libraries()->find(args[1]);
  const bool reads =
      found.function != nullptr && (found.function->flags & script::flag::kNoWrites) != 0;
  return reads ? &kReading : nullptr;
}

}  // namespace

std::span<const CommandRow> function_rows() {
  return kRows;
}

}  // namespace ingot::commands
