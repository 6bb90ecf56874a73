// AUTH ECHO HELLO PING QUIT RESET SELECT: one client's relation to the server.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/access/users.h"
#include "src/commands/client_name.h"
#include "src/commands/families.h"
#include "src/contract/errors.h"
#include "src/contract/thresholds.h"
#include "src/settings/config.h"

namespace ingot::commands {
namespace {

constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

void set_account(SessionContext& context, access::AccountPtr account, bool authenticated) {
  context.client.set_account(std::move(account));
  context.client.authenticated = authenticated;
}

// `command` as it was given.
bool authenticate(SessionContext& context, std::string_view command, std::string_view user,
                  std::string_view password) {
  access::AccountPtr account;
  // In a transaction the writer would hash it, so a long one is wrong.
  if (!context.in_exec || password.size() <= contract::kHashedOnIoThreadBytes) {
    account = context.users.authenticate(user, password);
  }
  if (account == nullptr) {
    access::log_denied(
        context.users.log(), context.clients, context.client.id,
        context.config.settings()->acllog_max_len,
        {.reason = "auth",
         .origin = context.in_exec ? access::Origin::kMulti : access::Origin::kTopLevel,
         .object = std::string(command),
         .user = std::string(user),
         .time_ms = context.server.now_ms()});
    return false;
  }
  set_account(context, std::move(account), true);
  return true;
}

void auth(SessionContext& context, Args args) {
  if (args.size() > 3) return context.reply.error(contract::error::kSyntax);
  if (args.size() == 2 && context.users.default_account()->user()->nopass) {
    return context.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const std::string_view user = args.size() == 3 ? args[1] : access::kDefaultName;
  if (!authenticate(context, args[0], user, args.back())) {
    return context.reply.error(kWrongPassword);
  }
  context.reply.ok();
}

void echo(SessionContext& context, Args args) {
  context.reply.bulk(args[1]);
}

void ping(SessionContext& context, Args args) {
  if (args.size() > 2) return context.reply.error(contract::wrong_arity_error("ping"));
  if (context.client.resp == 2 && context.client.is_subscriber()) {
    context.reply.array(2);
    context.reply.bulk("pong");
    return context.reply.bulk(args.size() == 2 ? args[1] : "");
  }
  if (args.size() == 2) return context.reply.bulk(args[1]);
  context.reply.simple("PONG");
}

void quit(SessionContext& context, Args) {
  context.client.close_after_reply = true;
  context.reply.ok();
}

void select(SessionContext& context, Args args) {
  const std::optional<int64_t> db = contract::parse_integer(args[1]);
  if (!db) return context.reply.error(contract::error::kNotInteger);
  if (*db < std::numeric_limits<int>::min() || *db > std::numeric_limits<int>::max()) {
    return context.reply.error(
        "ERR value is out of range, value must between -2147483648 and 2147483647");
  }
  if (*db < 0 || *db >= context.config.settings()->databases) {
    return context.reply.error(contract::error::kDbOutOfRange);
  }
  context.client.db = static_cast<int>(*db);
  context.reply.ok();
}

void reset(SessionContext& context, Args) {
  contract::Client& client = context.client;
  client.in_multi = false;
  client.multi_failed = client.unwatched = false;
  client.queue.clear();
  client.queued = -1;
  context.server.unwatch(client.id);
  for (const auto kind : {contract::ChannelKind::kChannel, contract::ChannelKind::kPattern,
                          contract::ChannelKind::kShard, contract::ChannelKind::kMonitor}) {
    for (const std::string& name : context.channels.names_of(client, kind)) {
      context.channels.unsubscribe(client, kind, name);
    }
  }
  context.tracking.disable(client);
  client.db = 0;
  client.resp = 2;
  context.reply.set_version(2);
  client.set_name("");
  using contract::ReplyMode;
  if (client.reply_mode != ReplyMode::kSkipThis) client.reply_mode = ReplyMode::kOn;
  client.no_touch = false;
  const access::AccountPtr& account = context.users.default_account();
  set_account(context, account, !account->needs_password());
  context.reply.simple("RESET");
}

// The options behind HELLO's version, each done as it comes.
void apply_hello_options(SessionContext& context, std::string_view command, ArgReader& reader) {
  while (reader.more()) {
    if (reader.word("auth", 2)) {
      const std::string_view user = reader.text();
      if (!authenticate(context, command, user, reader.text())) reader.fail(kWrongPassword);
    } else if (reader.word("setname", 1)) {
      const std::string_view name = reader.text();
      if (!is_client_name(name)) {
        reader.fail(kBadClientName);
      } else if (name.size() > kClientNameMax) {
        reader.fail(contract::kOutOfMemory);
      } else {
        context.client.set_name(std::string(name));
      }
    } else {
      reader.fail("ERR Syntax error in HELLO option '" + std::string(reader.text()) + "'");
    }
  }
}

void hello(SessionContext& context, Args args) {
  contract::Client& client = context.client;
  int version = client.resp;
  ArgReader reader(args);
  if (reader.more()) {
    const int64_t asked = reader.integer("ERR Protocol version is not an integer or out of range");
    if (asked < 2 || asked > 3) reader.fail("NOPROTO unsupported protocol version");
    version = static_cast<int>(asked);
    apply_hello_options(context, args[0], reader);
    if (reader.failed()) return context.reply.error(reader.error());
  }
  if (!client.authenticated) {
    return context.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time");
  }
  client.resp = version;
  context.reply.set_version(version);
  context.reply.map(7);
  context.reply.bulk("server");
  context.reply.bulk("redis");  // and its version: clients choose what they do by them
  context.reply.bulk("version");
  context.reply.bulk("7.0.15");
  context.reply.bulk("proto");
  context.reply.integer(client.resp);
  context.reply.bulk("id");
  context.reply.integer(static_cast<int64_t>(client.id));
  context.reply.bulk("mode");
  context.reply.bulk("standalone");
  context.reply.bulk("role");
  context.reply.bulk(context.server.master_link() ? "replica" : "master");
  context.reply.bulk("modules");
  context.reply.array(0);
}

const CommandRow* row_for_long_password(Args args);
const CommandRow* row_for_long_hello(Args args);

constexpr uint32_t kAnytime = flag::kLoading | flag::kStale | flag::kFast;
constexpr uint32_t kWithoutAuth = kAnytime | flag::kNoScript | flag::kNoAuth | flag::kAllowBusy;

constexpr CommandRow kTable[] = {
    {.name = "auth",
     .arity = -2,
     .flags = kWithoutAuth,
     .since = "1.0.0",
     .complexity = "O(N), N being the passwords of the user",
     .summary = "Prove who the client is, by a password",
     .history = "6.0.0: A user name may precede the password.",
     .arguments = "username:string@6.0.0? password:string",
     .handler = auth,
     .instead = row_for_long_password,
     .immediate = true},
    {.name = "echo",
     .arity = 2,
     .flags = kAnytime,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Answer the argument",
     .arguments = "message:string",
     .handler = echo,
     .immediate = true},
    {.name = "hello",
     .arity = -1,
     .flags = kWithoutAuth,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "Choose the protocol's version, and learn about the server",
     .history = "6.2.0: Without arguments it only tells about the connection.",
     .arguments = "arguments:block?(protover:integer username_password:block=AUTH?(username:string "
                  "password:string) clientname:string=SETNAME?)",
     .handler = hello,
     .instead = row_for_long_hello,
     .immediate = true},
    {.name = "ping",
     .arity = -1,
     .flags = flag::kFast,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Answer PONG or the argument, to show that the server is there",
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .arguments = "message:string?",
     .handler = ping,
     .immediate = true,
     .from_subscribers = true},
    {.name = "quit",
     .arity = -1,
     .flags = kWithoutAuth,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "End the connection",
     .handler = quit,
     .from_subscribers = true},
    {.name = "reset",
     .arity = 1,
     .flags = kWithoutAuth,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Bring the connection back to the state of a new one",
     .handler = reset,
     .from_subscribers = true},
    {.name = "select",
     .arity = 2,
     .flags = kAnytime,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Change the database that the connection works on",
     .arguments = "index:integer",
     .handler = select,
     .immediate = true},
};
constexpr auto kRows = contract::family(kConnectionFamily, kTable);

// To hash a long password takes milliseconds.
constexpr CommandRow in_pool(const CommandRow& row, contract::SessionHandler handler) {
  CommandRow variant = contract::variant_of(row, handler);
  variant.immediate = false;
  variant.offload = true;
  return variant;
}
constexpr CommandRow kLongAuth = in_pool(kRows[0], auth);
constexpr CommandRow kLongHello = in_pool(kRows[2], hello);

bool has_long_argument(Args args) {
  return std::ranges::any_of(
      args, [](std::string_view arg) { return arg.size() > contract::kHashedOnIoThreadBytes; });
}
const CommandRow* row_for_long_password(Args args) {
  return has_long_argument(args) ? &kLongAuth : nullptr;
}
const CommandRow* row_for_long_hello(Args args) {
  return has_long_argument(args) ? &kLongHello : nullptr;
}

}  // namespace

std::span<const CommandRow> connection_rows() {
  return kRows;
}

}  // namespace ingot::commands
