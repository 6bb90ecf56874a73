// INFO LASTSAVE SAVE BGSAVE BGREWRITEAOF ROLE SHUTDOWN TIME WAIT WAITAOF REPLICAOF: the server as a
// whole.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/blocking.h"
#include "src/commands/families.h"
#include "src/contract/replicas.h"
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

void save(SessionContext& context, Args) {
  if (const storage::Status status = context.server.save(); !status.ok()) {
    return context.reply.error("ERR " + status.message());
  }
  context.reply.ok();
}

void bgsave(SessionContext& context, Args args) {
  ArgReader reader(args);
  (void)reader.word("schedule");
  if (!reader.done()) return context.reply.error(reader.error());
  if (const storage::Status begun = context.server.save_in_background(); !begun.ok()) {
    return context.reply.error("ERR " + begun.message());
  }
  context.reply.simple(context.in_exec ? "Background saving scheduled"
                                       : "Background saving started");
}

void bgrewriteaof(SessionContext& context, Args) {
  if (const storage::Status begun = context.server.rewrite_in_background(); !begun.ok()) {
    return context.reply.error("ERR " + begun.message());
  }
  // Redis begins when the transaction is over.
  context.reply.simple(context.in_exec ? "Background append only file rewriting scheduled"
                                       : "Background append only file rewriting started");
}

std::string_view state_name(contract::MasterLink::State state) {
  using State = contract::MasterLink::State;
  switch (state) {
    case State::kConnect:
      return "connect";
    case State::kConnecting:
      return "connecting";
    case State::kHandshake:
      return "handshake";
    case State::kTransfer:
      return "sync";
    case State::kConnected:
      return "connected";
  }
  return "unknown";
}

void role(SessionContext& context, Args) {
  if (const auto link = context.server.master_link()) {
    context.reply.array(5);
    context.reply.bulk("slave");
    context.reply.bulk(link->host);
    context.reply.integer(link->port);
    context.reply.bulk(state_name(link->state));
    const bool connected = link->state == contract::MasterLink::State::kConnected;
    return context.reply.integer(connected ? static_cast<int64_t>(link->applied_offset) : -1);
  }
  std::vector<std::shared_ptr<contract::Client>> online = context.server.replicas().all();
  std::erase_if(online, [](const auto& client) {
    return client->replica->state != contract::Replica::State::kOnline;
  });
  context.reply.array(3);
  context.reply.bulk("master");
  context.reply.integer(context.server.stream_offset());
  context.reply.array(online.size());
  for (const auto& client : online) {
    const contract::Replica& replica = *client->replica;
    context.reply.array(3);
    context.reply.bulk(replica.ip.empty() ? client->address.substr(0, client->address.rfind(':'))
                                          : replica.ip);
    context.reply.bulk(std::to_string(replica.port));
    context.reply.bulk(std::to_string(replica.acked.load()));
  }
}

// Everything answered is in the engine's log, so that with and without SAVE it stops the same way.
void shutdown(SessionContext& context, Args args) {
  bool abort = false;
  bool save = false;
  bool nosave = false;
  bool now = false;
  bool force = false;  // of a shutdown that could fail
  ArgReader reader(args);
  while (reader.flag({{"abort", &abort},
                      {"save", &save},
                      {"nosave", &nosave},
                      {"now", &now},
                      {"force", &force}})) {
  }
  if (!reader.done() || (save && nosave) || (abort && (save || nosave || now || force))) {
    return context.reply.error(contract::error::kSyntax);
  }
  if (abort) {
    const bool called_off = context.server.call_off_shutdown();
    return called_off ? context.reply.ok() : context.reply.error("ERR No shutdown in progress.");
  }
  const std::string_view busy = context.scripts.busy(context.client.id);
  if (!nosave && !busy.empty()) return context.reply.error(busy);
  context.reply.elements(context.server.request_shutdown(now));
}

void time(SessionContext& context, Args) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  context.reply.array(2);
  context.reply.bulk(std::to_string(micros / 1000000));
  context.reply.bulk(std::to_string(micros % 1000000));
}

// A replica's own changes go nowhere.
bool follows_a_master(const WriteContext& ctx) {
  return !ctx.config.settings()->master.host.empty();
}

void wait(WriteContext& ctx, Args args) {
  if (follows_a_master(ctx)) {
    return ctx.reply.error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  const std::optional<int64_t> replicas = contract::parse_integer(args[1]);
  if (!replicas) return ctx.reply.error(contract::error::kNotInteger);
  const std::optional<int64_t> until_ms = wait_until_ms(ctx, args[2]);
  if (!until_ms) return;
  const uint64_t offset = ctx.replicas.changed;
  if (!ctx.may_block)
    return ctx.reply.integer(static_cast<int64_t>(ctx.replicas.count_acked(offset)));
  ctx.block({.keys = {},
             .for_acks = static_cast<size_t>(std::max<int64_t>(*replicas, 0)),
             .until_ms = *until_ms});
}

// The log is always on here.
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
  if (follows_a_master(ctx)) {
    return ctx.reply.error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  // What is answered has been synced before, then.
  const bool always = ctx.config.settings()->appendfsync == settings::AppendFsync::kAlways;
  const bool for_sync = *local == 1 && !always;
  if (!ctx.may_block || (*replicas == 0 && !for_sync)) {
    const size_t synced = ctx.replicas.count_acked(ctx.replicas.changed, /*synced=*/true);
    return contract::reply_synced(ctx.reply, always, synced);
  }
  ctx.block({.keys = {},
             .for_acks = static_cast<size_t>(*replicas),
             .on_disk = true,
             .for_sync = for_sync,
             .until_ms = *until_ms});
}

void replicaof(SessionContext& context, Args args) {
  if (context.server.failover_state() != "no-failover") {
    return context.reply.error("ERR REPLICAOF not allowed while failing over.");
  }
  ArgReader reader(args);
  if (reader.word("no") && reader.word("one")) {
    context.server.follow_nobody();
    return context.reply.ok();
  }
  const std::optional<int64_t> port = contract::parse_integer(args[2]);
  if (!port || *port < 0 || *port > 65535) return context.reply.error("ERR Invalid master port");
  const bool is_new = context.server.follow_master(std::string(args[1]), static_cast<int>(*port));
  is_new ? context.reply.ok() : context.reply.simple("OK Already connected to specified master");
}

void failover(SessionContext& context, Args args) {
  if (args.size() == 2 && contract::equals_ignore_case(args[1], "abort")) {
    if (context.server.abort_failover()) return context.reply.ok();
    return context.reply.error("ERR No failover in progress.");
  }
  contract::FailoverRequest request;
  ArgReader reader(args);
  while (reader.more()) {
    if (request.timeout_ms == 0 && reader.word("timeout", 1)) {
      request.timeout_ms = reader.integer();
      if (!reader.failed() && request.timeout_ms <= 0) {
        return context.reply.error("ERR FAILOVER timeout must be greater than 0");
      }
    } else if (!request.host && reader.word("to", 2)) {
      request.host = reader.text();
      request.port = reader.integer();
    } else if (request.force || !reader.word("force")) {
      return context.reply.error(contract::error::kSyntax);
    } else {
      request.force = true;
    }
  }
  if (reader.failed()) return context.reply.error(reader.error());
  const std::string error = context.server.fail_over(std::move(request));
  error.empty() ? context.reply.ok() : context.reply.error(error);
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
     .handler = shutdown,
     .pushes = true},
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
     .handler = wait,
     .blocks = true},
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
    {.name = "failover",
     .arity = -1,
     .flags = flag::kAdmin | flag::kNoScript | flag::kStale,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Hand the master's place to one of its replicas",
     .arguments = "target:block=TO?(host:string port:integer force:pure-token=FORCE?) "
                  "abort:pure-token=ABORT? milliseconds:integer=TIMEOUT?",
     .handler = failover},
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
