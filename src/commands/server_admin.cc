// INFO LASTSAVE SAVE BGSAVE BGREWRITEAOF ROLE SHUTDOWN TIME WAIT WAITAOF REPLICAOF: the server as a
// whole.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "src/commands/blocking.h"
#include "src/commands/families.h"
#include "src/contract/running_server.h"
#include "src/script/scripts.h"
#include "src/settings/config.h"

namespace ingot::commands {
namespace {

// A read, because it counts keys: inside EXEC those that the transaction itself has written.
void info(ReadContext& context, Args args) {
  context.reply.verbatim("txt", context.server.info(context.keys, args.subspan(1)));
}

void lastsave(SessionContext& context, Args) {
  context.reply.integer(context.server.last_save_s());
}

constexpr std::string_view kSaving = "ERR Background save already in progress";

void save(SessionContext& context, Args) {
  contract::RunningServer& server = context.server;
  if (server.saving()) return context.reply.error(kSaving);
  if (const storage::Status status = server.save(); !status.ok()) {
    return context.reply.error("ERR " + status.message());
  }
  context.reply.ok();
}

void bgsave(SessionContext& context, Args args) {
  ArgReader reader(args);
  (void)reader.word("schedule");
  if (!reader.done()) return context.reply.error(reader.error());
  if (!context.server.save_in_background()) return context.reply.error(kSaving);
  context.reply.simple(context.in_exec ? "Background saving scheduled"
                                       : "Background saving started");
}

void bgrewriteaof(SessionContext& context, Args) {
  if (!context.server.rewrite_in_background()) {
    return context.reply.error("ERR Background append only file rewriting already in progress");
  }
  // Redis begins when the transaction is over.
  context.reply.simple(context.in_exec ? "Background append only file rewriting scheduled"
                                       : "Background append only file rewriting started");
}

void role(SessionContext& context, Args) {
  context.reply.array(3);
  context.reply.bulk("master");
  context.reply.integer(0);
  context.reply.array(0);
}

// Everything answered is in the engine's log, so that with and without SAVE it stops the same way.
void shutdown(SessionContext& context, Args args) {
  bool abort = false;
  bool save = false;
  bool nosave = false;
  bool other = false;
  ArgReader reader(args);
  while (reader.flag({{"abort", &abort},
                      {"save", &save},
                      {"nosave", &nosave},
                      {"now", &other},
                      {"force", &other}})) {
  }
  if (!reader.done() || (save && nosave) || (abort && (save || nosave || other))) {
    return context.reply.error(contract::error::kSyntax);
  }
  // A shutdown waits for nothing that could be called off.
  if (abort) return context.reply.error("ERR No shutdown in progress.");
  const std::string_view busy = context.scripts.busy(context.client.id);
  if (!nosave && !busy.empty()) return context.reply.error(busy);
  context.server.request_shutdown();
}

void time(SessionContext& context, Args) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  context.reply.array(2);
  context.reply.bulk(std::to_string(micros / 1000000));
  context.reply.bulk(std::to_string(micros % 1000000));
}

// No replica will acknowledge anything, so that there is nothing to wait for.
void wait(SessionContext& context, Args args) {
  if (!contract::parse_integer(args[1])) return context.reply.error(contract::error::kNotInteger);
  const std::optional<int64_t> timeout = contract::parse_integer(args[2]);
  if (!timeout) return context.reply.error("ERR timeout is not an integer or out of range");
  if (*timeout < 0) return context.reply.error("ERR timeout is negative");
  context.reply.integer(0);
}

// The log is always on here, and no replica will acknowledge anything.
void waitaof(WriteContext& ctx, Args args) {
  const std::optional<int64_t> local = contract::parse_integer(args[1]);
  if (!local) return ctx.reply.error(contract::error::kNotInteger);
  if (*local < 0 || *local > 1) {
    return ctx.reply.error("ERR value is out of range, value must between 0 and 1");
  }
  const std::optional<int64_t> replicas = contract::parse_integer(args[2]);
  if (!replicas) return ctx.reply.error(contract::error::kNotInteger);
  if (*replicas < 0) return ctx.reply.error("ERR value is out of range, must be positive");
  const std::optional<int64_t> until_ms = wait_until_ms(ctx, args[3]);
  if (!until_ms) return;
  // What is answered has been synced before, then.
  const bool always = ctx.config.settings()->appendfsync == settings::AppendFsync::kAlways;
  if (always || ctx.fed || *local == 0 || !ctx.may_block) {
    return contract::reply_synced(ctx.reply, always || ctx.fed);
  }
  ctx.block({.keys = {}, .for_sync = true, .until_ms = *until_ms});
}

void replicaof(SessionContext& context, Args args) {
  ArgReader reader(args);
  if (reader.word("no") && reader.word("one")) return context.reply.ok();
  const std::optional<int64_t> port = contract::parse_integer(args[2]);
  if (!port || *port < 0 || *port > 65535) return context.reply.error("ERR Invalid master port");
  context.reply.error("ERR Ingot cannot replicate yet: only REPLICAOF NO ONE is supported");
}

constexpr uint32_t kAnytime = flag::kLoading | flag::kStale;
constexpr uint32_t kSaveFlags = flag::kAdmin | flag::kNoScript | flag::kNoAsyncLoading;
constexpr std::string_view kReplicaofArguments =
    "args:oneof(host-port:block(host:string port:integer) "
    "no-one:block(no:pure-token=NO one:pure-token=ONE))";

constexpr CommandRow kTable[] = {
    {.name = "info",
     .arity = -1,
     .flags = kAnytime,
     .acl = acl::kDangerous,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Figures about the server, by section",
     .history = "7.0.0: Several sections may be asked for.",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .arguments = "section:string?*",
     .handler = info,
     .scans = true},
    {.name = "lastsave",
     .arity = 1,
     .flags = kAnytime | flag::kFast,
     .acl = acl::kAdmin | acl::kDangerous,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "When the last checkpoint was made, in Unix seconds",
     .tips = "nondeterministic_output",
     .handler = lastsave},
    {.name = "save",
     .arity = 1,
     .flags = kSaveFlags | flag::kNoMulti,
     .since = "1.0.0",
     .complexity = "O(N), N being the engine's files",
     .summary = "Make a checkpoint of all data, and wait for it",
     .handler = save,
     .offload = true},
    {.name = "bgsave",
     .arity = -1,
     .flags = kSaveFlags,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Begin to make a checkpoint of all data",
     .history = "3.2.2: The option `SCHEDULE`.",
     .arguments = "schedule:pure-token=SCHEDULE@3.2.2?",
     .handler = bgsave},
    {.name = "bgrewriteaof",
     .arity = 1,
     .flags = kSaveFlags,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Begin to write all files of the engine anew, without what is outdated",
     .handler = bgrewriteaof},
    {.name = "role",
     .arity = 1,
     .flags = kAnytime | flag::kNoScript | flag::kFast,
     .acl = acl::kAdmin | acl::kDangerous,
     .since = "2.8.12",
     .complexity = "O(1)",
     .summary = "The part that the server plays in replication",
     .handler = role},
    {.name = "shutdown",
     .arity = -1,
     .flags = kAnytime | flag::kAdmin | flag::kNoScript | flag::kNoMulti | flag::kAllowBusy,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Stop the server; all data stays",
     .history = "7.0.0: The options `NOW`, `FORCE` and `ABORT`.",
     .arguments = "nosave_save:oneof?(nosave:pure-token=NOSAVE save:pure-token=SAVE) "
                  "now:pure-token=NOW@7.0.0? force:pure-token=FORCE@7.0.0? "
                  "abort:pure-token=ABORT@7.0.0?",
     .handler = shutdown},
    {.name = "time",
     .arity = 1,
     .flags = kAnytime | flag::kFast,
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "The server's clock: Unix seconds, and microseconds within the second",
     .tips = "nondeterministic_output",
     .handler = time,
     .immediate = true},
    {.name = "wait",
     .arity = 3,
     .flags = flag::kNoScript,
     .acl = acl::kConnection,
     .group = "generic",
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "How many replicas have the writes of this connection",
     .tips = "request_policy:all_shards,response_policy:agg_min",
     .arguments = "numreplicas:integer timeout:integer",
     .handler = wait},
    {.name = "waitaof",
     .arity = 4,
     .flags = flag::kNoScript | flag::kBlocking,
     .acl = acl::kConnection,
     .group = "generic",
     .since = "7.2.0",
     .complexity = "O(1)",
     .summary = "Wait until the writes of this connection are on stable storage",
     .tips = "request_policy:all_shards,response_policy:agg_min",
     .arguments = "numlocal:integer numreplicas:integer timeout:integer",
     .handler = waitaof},
    {.name = "replicaof",
     .arity = 3,
     .flags = kSaveFlags | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Follow another server, or none",
     .arguments = kReplicaofArguments,
     .handler = replicaof},
    {.name = "slaveof",
     .arity = 3,
     .flags = kSaveFlags | flag::kStale,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "The old name of REPLICAOF",
     .deprecated_since = "5.0.0",
     .replaced_by = "`REPLICAOF`",
     .arguments = kReplicaofArguments,
     .handler = replicaof},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> server_rows() {
  return kRows;
}

}  // namespace ingot::commands
