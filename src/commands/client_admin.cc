// CLIENT: what a connection says about itself, and the rows of all subcommands.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "src/access/client_line.h"
#include "src/access/users.h"
#include "src/commands/client_filters.h"
#include "src/commands/client_name.h"
#include "src/commands/client_tracking.h"
#include "src/commands/client_waiting.h"
#include "src/commands/families.h"
#include "src/contract/client_registry.h"
#include "src/contract/errors.h"
#include "src/contract/table.h"

namespace ingot::commands {
namespace {

using access::client_line;
using contract::Client;

void client_id(SessionContext& context, Args) {
  context.reply.integer(static_cast<int64_t>(context.client.id));
}

void client_info(SessionContext& context, Args) {
  std::string text;
  context.clients.visit(context.client.id, [&](const Client& client) {
    text = client_line(client, context.server.now_ms()) + '\n';
  });
  context.reply.verbatim("txt", text);
}

void client_setname(SessionContext& context, Args args) {
  if (!is_client_name(args[2])) return context.reply.error(kBadClientName);
  if (args[2].size() > kClientNameMax) return context.reply.error(contract::kOutOfMemory);
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

void client_no_touch(SessionContext& context, Args args) {
  const auto on = ArgReader(args, 2).choice<bool>({{"on", true}, {"off", false}});
  if (!on) return context.reply.error(contract::error::kSyntax);
  context.client.no_touch = *on;
  context.reply.ok();
}

void client_setinfo(SessionContext& context, Args args) {
  using Setter = void (Client::*)(std::string);
  const auto set = ArgReader(args, 2).choice<Setter>(
      {{"lib-name", &Client::set_library_name}, {"lib-ver", &Client::set_library_version}});
  if (!set) return context.reply.error(fmt::format("ERR Unrecognized option '{}'", args[2]));
  if (!is_client_name(args[3])) {
    return context.reply.error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", args[2]));
  }
  if (args[3].size() > kClientNameMax) return context.reply.error(contract::kOutOfMemory);
  (context.client.**set)(std::string(args[3]));
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
      "UNPAUSE",
      "    Stop the current client pause, resuming traffic.",
      "PAUSE <timeout> [WRITE|ALL]",
      "    Suspend all, or just write, clients for <timeout> milliseconds.",
      "REPLY (ON|OFF|SKIP)",
      "    Control the replies sent to the current connection.",
      "SETNAME <name>",
      "    Assign the name <name> to the current connection.",
      "UNBLOCK <clientid> [TIMEOUT|ERROR]",
      "    Unblock the specified blocked client.",
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
    {.name = "no-touch",
     .arity = 3,
     .flags = kOwnFlags,
     .since = "7.2.0",
     .complexity = "O(1)",
     .summary = "Whether what this connection looks up keeps its time of last use",
     .arguments = "enabled:oneof(on:pure-token=ON off:pure-token=OFF)",
     .handler = client_no_touch},
    {.name = "pause",
     .arity = -3,
     .flags = kAdminFlags,
     .since = "2.9.50",
     .complexity = "O(1)",
     .summary = "Hold back the commands of all clients for a while",
     .history = "6.2.0: The modes `WRITE` and `ALL`.",
     .arguments = "timeout:integer mode:oneof@6.2.0?(write:pure-token=WRITE all:pure-token=ALL)",
     .handler = client_pause,
     .alone = true},
    {.name = "setinfo",
     .arity = 4,
     .flags = kOwnFlags,
     .since = "7.2.0",
     .complexity = "O(1)",
     .summary = "Tell which library this connection is made by",
     .arguments = "attr:oneof(libname:string=LIB-NAME libver:string=LIB-VER)",
     .handler = client_setinfo,
     .immediate = true},
    {.name = "unblock",
     .arity = -3,
     .flags = kAdminFlags,
     .since = "5.0.0",
     .complexity = "O(log N), N being the connected clients",
     .summary = "End the wait of a client in a blocking command",
     .arguments = "client-id:integer "
                  "timeout_error:oneof?(timeout:pure-token=TIMEOUT error:pure-token=ERROR)",
     .handler = client_unblock},
    {.name = "unpause",
     .arity = 2,
     .flags = kAdminFlags,
     .since = "6.2.0",
     .complexity = "O(N), N being the clients that were held back",
     .summary = "End a pause of all clients",
     .handler = client_unpause},
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
