// CLIENT: who is connected, what they are called, and ending their connections.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "src/commands/client_name.h"
#include "src/commands/client_tracking.h"
#include "src/commands/families.h"
#include "src/contract/client_registry.h"
#include "src/contract/table.h"

namespace ingot::commands {
namespace {

using contract::ChannelKind;
using contract::Client;

enum class ClientType : uint8_t { kNormal, kReplica, kPubsub, kMaster };

ClientType read_client_type(ArgReader& reader) {
  const auto type = reader.choice<ClientType>({{"normal", ClientType::kNormal},
                                               {"slave", ClientType::kReplica},
                                               {"replica", ClientType::kReplica},
                                               {"pubsub", ClientType::kPubsub},
                                               {"master", ClientType::kMaster}});
  if (!type) reader.fail(fmt::format("ERR Unknown client type '{}'", reader.text()));
  return type.value_or(ClientType::kNormal);
}

std::string command_name(const Client& client) {
  const CommandRow* row = client.last_command;
  const CommandRow* subcommand = client.last_subcommand;
  if (row == nullptr) return "NULL";
  return subcommand != nullptr ? full_name(row, *subcommand) : full_name(nullptr, *row);
}

ClientType type_of(const Client& client) {
  return client.is_subscriber() ? ClientType::kPubsub : ClientType::kNormal;
}

std::string flags_of(const Client& client) {
  std::string flags;
  const uint32_t tracking = client.tracking;
  if (client.is_subscriber()) flags += 'P';
  if (client.queued >= 0) flags += 'x';
  if (tracking != 0) flags += 't';
  if ((tracking & contract::tracks::kBrokenRedirect) != 0) flags += 'R';
  if ((tracking & contract::tracks::kBroadcast) != 0) flags += 'B';
  if (client.is_unix) flags += 'U';
  if (client.no_evict) flags += 'e';
  return flags.empty() ? "N" : flags;
}

int64_t steady_now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// One line of CLIENT LIST without its end. Called under the registry's lock.
std::string describe(const Client& client, int64_t now_ms) {
  const net::Connection* connection = client.connection;
  uint64_t input = 0;
  uint64_t input_free = 0;
  uint64_t output = 0;
  int64_t idle_ms = 0;
  if (connection != nullptr) {
    input = connection->query_buffer_bytes;
    input_free = connection->query_buffer_free;
    output = connection->output_bytes;
    idle_ms = std::max<int64_t>(0, steady_now_ms() - connection->last_interaction_ms);
  }
  const uint64_t arguments = client.pending_bytes;
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} qbuf={} qbuf-free={} argv-mem={} multi-mem=0 rbs=0 rbp=0 obl=0 oll={} omem={} "
      "tot-mem={} events={} cmd={} user={} redir={} resp={}",
      client.id, client.address, client.local_address, client.fd, client.name(),
      (now_ms - client.created_ms) / 1000, idle_ms / 1000, flags_of(client), client.db.load(),
      client.subscribed_to(ChannelKind::kChannel), client.subscribed_to(ChannelKind::kPattern),
      client.subscribed_to(ChannelKind::kShard), client.queued.load(), input, input_free, arguments,
      output > 0 ? 1 : 0, output, sizeof(Client) + input + input_free + arguments + output,
      output > 0 ? "rw" : "r", command_name(client), client.user, redirect_of(client),
      client.resp.load());
}

void client_id(SessionContext& context, Args) {
  context.reply.integer(static_cast<int64_t>(context.client.id));
}

void client_info(SessionContext& context, Args) {
  std::string text;
  context.clients.visit(context.client.id, [&](const Client& client) {
    text = describe(client, context.server.now_ms()) + '\n';
  });
  context.reply.verbatim("txt", text);
}

void list_by_id(SessionContext& context, Args ids) {
  std::string text;
  for (const std::string_view word : ids) {
    const std::optional<int64_t> id = contract::parse_integer(word);
    if (!id) return context.reply.error("ERR Invalid client ID");
    if (*id <= 0) continue;
    context.clients.visit(static_cast<uint64_t>(*id), [&](const Client& client) {
      text += describe(client, context.server.now_ms()) + '\n';
    });
  }
  context.reply.verbatim("txt", text);
}

void client_list(SessionContext& context, Args args) {
  std::optional<ClientType> type;
  ArgReader reader(args, 2);
  if (reader.left() == 2 && reader.word("type")) {
    type = read_client_type(reader);
  } else if (reader.word("id", 1)) {
    return list_by_id(context, reader.rest());
  }
  if (!reader.done()) return context.reply.error(reader.error());
  std::string text;
  const int64_t now_ms = context.server.now_ms();
  context.clients.for_each([&](const Client& client) {
    if (!type || *type == type_of(client)) text += describe(client, now_ms) + '\n';
  });
  context.reply.verbatim("txt", text);
}

// Whom CLIENT KILL means.
struct KillFilter {
  uint64_t id = 0;  // 0: any
  std::optional<std::string_view> address;
  std::optional<std::string_view> local_address;
  std::optional<ClientType> type;
  bool skip_me = true;

  bool matches(const Client& client, const Client& me) const {
    return (id == 0 || client.id == id) && (!address || client.address == *address) &&
           (!local_address || client.local_address == *local_address) &&
           (!type || *type == type_of(client)) && !(skip_me && client.id == me.id);
  }
};

void read_kill_option(ArgReader& reader, KillFilter* filter) {
  if (reader.word("id", 1)) {
    filter->id = static_cast<uint64_t>(reader.integer_between(
        1, std::numeric_limits<int64_t>::max(), "ERR client-id should be greater than 0"));
  } else if (reader.word("type", 1)) {
    filter->type = read_client_type(reader);
  } else if (reader.word("addr", 1)) {
    filter->address = reader.text();
  } else if (reader.word("laddr", 1)) {
    filter->local_address = reader.text();
  } else if (reader.word("user", 1)) {
    const std::string_view user = reader.text();
    if (user != "default") reader.fail(fmt::format("ERR No such user '{}'", user));
  } else if (reader.word("skipme", 1)) {
    const auto skip = reader.choice<bool>({{"yes", true}, {"no", false}});
    if (!skip) reader.fail(contract::error::kSyntax);
    filter->skip_me = skip.value_or(true);
  } else {
    reader.fail(contract::error::kSyntax);
  }
}

// How many connections it ended, its own included, which closes after the reply.
int64_t kill_clients(SessionContext& context, const KillFilter& filter) {
  int64_t killed = 0;
  const auto kill = [&](Client& client) {
    if (!filter.matches(client, context.client)) return;
    ++killed;
    if (client.id == context.client.id) {
      context.client.close_after_reply = true;
    } else if (client.kill) {
      client.kill();
    }
  };
  if (filter.id != 0) {
    context.clients.visit(filter.id, kill);
  } else {
    context.clients.for_each(kill);
  }
  return killed;
}

void client_kill(SessionContext& context, Args args) {
  KillFilter filter;
  if (args.size() == 3) {
    filter.address = args[2];
    filter.skip_me = false;
    if (kill_clients(context, filter) == 0) return context.reply.error("ERR No such client");
    return context.reply.ok();
  }
  ArgReader reader(args, 2);
  while (reader.more()) read_kill_option(reader, &filter);
  if (reader.failed()) return context.reply.error(reader.error());
  context.reply.integer(kill_clients(context, filter));
}

void client_setname(SessionContext& context, Args args) {
  if (!is_client_name(args[2])) return context.reply.error(kBadClientName);
  context.client.set_name(std::string(args[2]));
  context.reply.ok();
}

void client_getname(SessionContext& context, Args) {
  const std::string name = context.client.name();
  if (name.empty()) return context.reply.null();
  context.reply.bulk(name);
}

void client_reply(SessionContext& context, Args args) {
  contract::ReplyMode& mode = context.client.reply_mode;
  ArgReader reader(args, 2);
  if (reader.word("on")) {
    mode = contract::ReplyMode::kOn;
    context.reply.ok();
  } else if (reader.word("off")) {
    mode = contract::ReplyMode::kOff;
  } else if (reader.word("skip")) {
    if (mode != contract::ReplyMode::kOff) mode = contract::ReplyMode::kSkipNext;
  } else {
    context.reply.error(contract::error::kSyntax);
  }
}

void client_no_evict(SessionContext& context, Args args) {
  const auto on = ArgReader(args, 2).choice<bool>({{"on", true}, {"off", false}});
  if (!on) return context.reply.error(contract::error::kSyntax);
  context.client.no_evict = *on;
  context.reply.ok();
}

void client_help(SessionContext& context, Args) {
  static constexpr std::string_view kLines[] = {
      "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CACHING (YES|NO)",
      "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
      "GETREDIR",
      "    Return the client ID we are redirecting to when tracking is enabled.",
      "GETNAME",
      "    Return the name of the current connection.",
      "ID",
      "    Return the ID of the current connection.",
      "INFO",
      "    Return information about the current client connection.",
      "KILL <ip:port>",
      "    Kill connection made from <ip:port>.",
      "KILL <option> <value> [<option> <value> [...]]",
      "    Kill connections. Options are:",
      "    * ADDR (<ip:port>|<unixsocket>:0)",
      "      Kill connections made from the specified address",
      "    * LADDR (<ip:port>|<unixsocket>:0)",
      "      Kill connections made to specified local address",
      "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
      "      Kill connections by type.",
      "    * USER <username>",
      "      Kill connections authenticated by <username>.",
      "    * SKIPME (YES|NO)",
      "      Skip killing current connection (default: yes).",
      "LIST [options ...]",
      "    Return information about client connections. Options:",
      "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
      "      Return clients of specified type.",
      "REPLY (ON|OFF|SKIP)",
      "    Control the replies sent to the current connection.",
      "SETNAME <name>",
      "    Assign the name <name> to the current connection.",
      "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
      "         [OPTIN] [OPTOUT] [NOLOOP]",
      "    Control server assisted client side caching.",
      "TRACKINGINFO",
      "    Report tracking status for the current connection.",
      "NO-EVICT (ON|OFF)",
      "    Protect current client connection from eviction.",
      "HELP",
      "    Prints this help.",
  };
  context.reply.array(std::size(kLines));
  for (const std::string_view line : kLines) context.reply.simple(line);
}

constexpr uint32_t kOwnFlags = flag::kNoScript | flag::kLoading | flag::kStale;
constexpr uint32_t kAdminFlags = kOwnFlags | flag::kAdmin;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "id",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "The number of this connection, which is never given to another",
     .handler = client_id,
     .immediate = true},
    {.name = "info",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "The line of CLIENT LIST that describes this connection",
     .tips = "nondeterministic_output",
     .handler = client_info},
    {.name = "list",
     .arity = -2,
     .flags = kAdminFlags,
     .since = "2.4.0",
     .complexity = "O(N), N being the connected clients",
     .summary = "Describe the connected clients, one a line",
     .history = "2.8.12: Each client has an `id`.; 5.0.0: Filtered by `TYPE`.; 6.0.0: The `user` "
                "field.; 6.2.0: The fields `argv-mem`, `tot-mem`, `laddr`, `redir`, and the filter "
                "`ID`.; 7.0.0: The fields `resp`, `multi-mem`, `rbs`, `rbp`.; 7.0.3: The `ssub` "
                "field.",
     .tips = "nondeterministic_output",
     .arguments = "normal_master_replica_pubsub:oneof=TYPE@5.0.0?(normal:pure-token=NORMAL "
                  "master:pure-token=MASTER replica:pure-token=REPLICA pubsub:pure-token=PUBSUB) "
                  "id:block=ID@6.2.0?(client-id:integer*)",
     .handler = client_list,
     .offload = true},
    {.name = "kill",
     .arity = -3,
     .flags = kAdminFlags,
     .since = "2.4.0",
     .complexity = "O(N), N being the connected clients",
     .summary = "End the connections that match",
     .history =
         "2.8.12: Filters by name and value.; 2.8.12: The filter `ID`.; 3.2.0: `TYPE master`.; "
         "5.0.0: `TYPE replica`, which was `slave` before.; 6.2.0: The filter `LADDR`.",
     .arguments = "filter:oneof(ip:port:string!2.8.12 new-format:oneof*("
                  "client-id:integer=ID@2.8.12? "
                  "normal_master_slave_pubsub:oneof=TYPE@2.8.12?(normal:pure-token=NORMAL "
                  "master:pure-token=MASTER@3.2.0 slave:pure-token=SLAVE "
                  "replica:pure-token=REPLICA@5.0.0 pubsub:pure-token=PUBSUB) "
                  "username:string=USER? ip:port:string=ADDR? ip:port:string=LADDR@6.2.0? "
                  "yes/no:string=SKIPME?))",
     .handler = client_kill},
    {.name = "caching",
     .arity = 3,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "Whether what the next command reads is tracked",
     .arguments = "mode:oneof(yes:pure-token=YES no:pure-token=NO)",
     .handler = client_caching},
    {.name = "getredir",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "The connection that is told what this one tracks",
     .handler = client_getredir},
    {.name = "tracking",
     .arity = -3,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1), and O(N) in the prefixes given",
     .summary = "Be told when what this connection has read changes",
     .arguments = "status:oneof(on:pure-token=ON off:pure-token=OFF) client-id:integer=REDIRECT? "
                  "prefix:string=PREFIX?*+ bcast:pure-token=BCAST? optin:pure-token=OPTIN? "
                  "optout:pure-token=OPTOUT? noloop:pure-token=NOLOOP?",
     .handler = client_tracking},
    {.name = "trackinginfo",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "How this connection tracks what it reads",
     .handler = client_trackinginfo},
    {.name = "setname",
     .arity = 3,
     .flags = kOwnFlags,
     .since = "2.6.9",
     .complexity = "O(1)",
     .summary = "Give this connection a name",
     .arguments = "connection-name:string",
     .handler = client_setname,
     .immediate = true},
    {.name = "getname",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "2.6.9",
     .complexity = "O(1)",
     .summary = "The name of this connection",
     .handler = client_getname,
     .immediate = true},
    {.name = "reply",
     .arity = 3,
     .flags = kOwnFlags,
     .since = "3.2.0",
     .complexity = "O(1)",
     .summary = "Choose whether commands of this connection are answered",
     .arguments = "on_off_skip:oneof(on:pure-token=ON off:pure-token=OFF skip:pure-token=SKIP)",
     .handler = client_reply,
     .immediate = true},
    {.name = "no-evict",
     .arity = 3,
     .flags = kAdminFlags,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "Spare this connection when memory for clients runs out",
     .arguments = "enabled:oneof(on:pure-token=ON off:pure-token=OFF)",
     .handler = client_no_evict},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "A short text about each subcommand",
     .handler = client_help},
};
constexpr auto kSubcommands = contract::family(kConnectionFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "client",
     .arity = -2,
     .since = "2.4.0",
     .complexity = "That of the subcommand",
     .summary = "Commands about client connections",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kConnectionFamily, kTable);

}  // namespace

std::span<const CommandRow> client_rows() {
  return kRows;
}

}  // namespace ingot::commands
