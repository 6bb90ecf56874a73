// ACL: the users, their rules, and what was refused.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/access/describe.h"
#include "src/access/passwords.h"
#include "src/access/user_file.h"
#include "src/access/users.h"
#include "src/access/verdict.h"
#include "src/commands/families.h"
#include "src/contract/channels.h"
#include "src/contract/client_registry.h"
#include "src/contract/help.h"
#include "src/contract/table.h"
#include "src/metrics/log.h"
#include "src/settings/config.h"

namespace ingot::commands {
namespace {

using contract::ChannelKind;

constexpr int64_t kPasswordBitsMax = 4096;

std::string wrong_arguments(std::string_view subcommand) {
  return fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try ACL HELP.",
                     subcommand);
}

// Its own one ends after the reply.
void end_connection(SessionContext& context, contract::Client& client) {
  if (client.id == context.client.id) {
    context.client.close_after_reply = true;
  } else if (client.kill) {
    client.kill();
  }
}

// Of users that are no more.
void end_deleted(SessionContext& context) {
  context.clients.for_each([&](contract::Client& client) {
    if (client.account()->is_deleted()) end_connection(context, client);
  });
}

// Ends the connections that listen to what their user may not listen to any more.
void end_listeners(SessionContext& context, const access::Account& account) {
  const auto user = account.user();
  const auto listens_on = [&](const contract::Client& client, ChannelKind kind) {
    const auto names = context.channels.names_of(client, kind);
    return std::ranges::any_of(names, [&](const std::string& name) {
      return !access::may_listen(*user, name, kind == ChannelKind::kPattern);
    });
  };
  context.clients.for_each([&](contract::Client& client) {
    if (client.account().get() != &account || !client.is_subscriber()) return;
    if (listens_on(client, ChannelKind::kChannel) || listens_on(client, ChannelKind::kPattern) ||
        listens_on(client, ChannelKind::kShard)) {
      end_connection(context, client);
    }
  });
}

void acl_setuser(SessionContext& context, Args args) {
  const bool all_channels =
      context.config.settings()->acl_pubsub_default == settings::AclPubsub::kAllChannels;
  const auto change = context.users.set(args[2], args.subspan(3), all_channels);
  if (!change) return context.reply.error("ERR " + change.error());
  if (change->before != nullptr &&
      access::narrows_channels(*change->before, *change->account->user())) {
    end_listeners(context, *change->account);
  }
  context.reply.ok();
}

void acl_deluser(SessionContext& context, Args args) {
  for (const std::string_view name : args.subspan(2)) {
    if (name == access::kDefaultName) {
      return context.reply.error("ERR The 'default' user cannot be removed");
    }
  }
  int64_t deleted = 0;
  for (const std::string_view name : args.subspan(2)) deleted += context.users.remove(name);
  if (deleted != 0) end_deleted(context);
  context.reply.integer(deleted);
}

void reply_selector(ReplySink& reply, const access::Selector& selector,
                    const access::CommandIds& ids) {
  reply.bulk("commands");
  reply.bulk(access::describe_commands(selector, ids));
  reply.bulk("keys");
  reply.bulk(access::describe_keys(selector));
  reply.bulk("channels");
  reply.bulk(access::describe_channels(selector));
}

void acl_getuser(SessionContext& context, Args args) {
  const access::AccountPtr account = context.users.find(args[2]);
  if (account == nullptr) return context.reply.null();
  const auto user = account->user();
  ReplySink& reply = context.reply;
  reply.map(6);
  reply.bulk("flags");
  const auto flags = access::describe_flags(*user);
  reply.set(flags.size());
  for (const std::string_view flag : flags) reply.bulk(flag);
  reply.bulk("passwords");
  reply.array(user->passwords.size());
  for (const std::string& hash : user->passwords) reply.bulk(hash);
  reply_selector(reply, user->root, context.users.ids());
  reply.bulk("selectors");
  reply.array(user->selectors.size());
  for (const access::Selector& selector : user->selectors) {
    reply.map(3);
    reply_selector(reply, selector, context.users.ids());
  }
}

void acl_list(SessionContext& context, Args) {
  const std::vector<std::string> lines = access::user_lines(context.users);
  context.reply.array(lines.size());
  for (const std::string& line : lines) context.reply.bulk(line);
}

void acl_users(SessionContext& context, Args) {
  const auto accounts = context.users.all();
  context.reply.array(accounts.size());
  for (const access::AccountPtr& account : accounts) context.reply.bulk(account->name);
}

void acl_whoami(SessionContext& context, Args) {
  context.reply.bulk(context.client.own_account().name);
}

void acl_cat(SessionContext& context, Args args) {
  if (args.size() > 3) return context.reply.error(wrong_arguments(args[1]));
  if (args.size() == 2) {
    context.reply.array(acl::kNames.size());
    for (const std::string_view name : acl::kNames) context.reply.bulk(name.substr(1));
    return;
  }
  const auto category = access::CommandIds::find_category(args[2]);
  if (!category) {
    return context.reply.error(fmt::format("ERR Unknown category '{}'", args[2].substr(0, 128)));
  }
  const access::CommandIds& ids = context.users.ids();
  std::vector<std::string_view> names;
  for (size_t id = 0; id < ids.size(); ++id) {
    if (ids.exists(id) && ids.members(*category).test(id)) names.push_back(ids.name(id));
  }
  context.reply.array(names.size());
  for (const std::string_view name : names) context.reply.bulk(name);
}

void acl_genpass(SessionContext& context, Args args) {
  if (args.size() > 3) return context.reply.error(wrong_arguments(args[1]));
  ArgReader reader(args, 2);
  const int64_t bits = reader.more() ? reader.integer() : 256;
  if (bits <= 0 || bits > kPasswordBitsMax) {
    reader.fail(
        fmt::format("ERR ACL GENPASS argument must be the number of bits for the output "
                    "password, a positive number up to {}",
                    kPasswordBitsMax));
  }
  if (reader.failed()) return context.reply.error(reader.error());
  context.reply.bulk(access::random_hex(static_cast<size_t>(bits + 3) / 4));
}

void acl_log(SessionContext& context, Args args) {
  if (args.size() > 3) return context.reply.error(wrong_arguments(args[1]));
  ArgReader reader(args, 2);
  if (reader.word("reset")) {
    context.users.log().reset();
    return context.reply.ok();
  }
  const int64_t count = reader.more() ? reader.integer() : 10;
  if (reader.failed()) return context.reply.error(reader.error());
  const auto entries = context.users.log().newest(static_cast<size_t>(std::max<int64_t>(0, count)));
  ReplySink& reply = context.reply;
  reply.array(entries.size());
  for (const access::LogEntry& entry : entries) {
    reply.map(7);
    reply.bulk("count");
    reply.integer(static_cast<int64_t>(entry.count));
    reply.bulk("reason");
    reply.bulk(entry.reason);
    reply.bulk("context");
    reply.bulk(access::origin_name(entry.origin));
    reply.bulk("object");
    reply.bulk(entry.object);
    reply.bulk("username");
    reply.bulk(entry.user);
    reply.bulk("age-seconds");
    reply.real(static_cast<double>(context.server.now_ms() - entry.time_ms) / 1000);
    reply.bulk("client-info");
    reply.bulk(entry.client);
  }
}

std::string dryrun_error(access::Verdict verdict, std::string_view command, Args args) {
  switch (verdict.reason) {
    case access::Reason::kKey:
      return fmt::format("This user has no permissions to access the '{}' key",
                         args[verdict.argument]);
    case access::Reason::kChannel:
      return fmt::format("This user has no permissions to access the '{}' channel",
                         args[verdict.argument]);
    default:
      return fmt::format("This user has no permissions to run the '{}' command", command);
  }
}

void acl_dryrun(SessionContext& context, Args args) {
  const access::AccountPtr account = context.users.find(args[2]);
  if (account == nullptr) {
    return context.reply.error(fmt::format("ERR User '{}' not found", args[2]));
  }
  const Args line = args.subspan(3);
  std::string error;
  const contract::Resolved resolved = context.table.resolve(line, &error);
  if (resolved.row == nullptr) {
    return context.reply.error(fmt::format("ERR Command '{}' not found", line[0]));
  }
  if (!error.empty()) return context.reply.error(error);
  const access::CommandIds& ids = context.users.ids();
  const access::Verdict verdict = access::check(*account->user(), ids, *resolved.row, line);
  if (verdict.is_allowed()) return context.reply.ok();
  context.reply.bulk(dryrun_error(verdict, ids.name_of(*resolved.row), line));
}

constexpr std::string_view kNoFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
    "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
    "configuration file set) in order to store users in the Redis configuration.";

void acl_load(SessionContext& context, Args) {
  const auto settings = context.config.settings();
  if (settings->aclfile.empty()) return context.reply.error(kNoFile);
  if (const auto errors = access::load_users(context.users, *settings)) {
    return context.reply.error("ERR " + *errors);
  }
  end_deleted(context);
  context.reply.ok();
}

void acl_save(SessionContext& context, Args) {
  const auto settings = context.config.settings();
  if (settings->aclfile.empty()) return context.reply.error(kNoFile);
  if (const auto error = access::save_users(context.users, *settings)) {
    metrics::log::warning("Writing the ACL file for ACL SAVE: {}", *error);
    return context.reply.error(
        "ERR There was an error trying to save the ACLs. Please check the server logs for more "
        "information");
  }
  context.reply.ok();
}

void acl_help(SessionContext& context, Args) {
  contract::reply_help(
      context.reply, "ACL",
      {"CAT [<category>]",
       "    List all commands that belong to <category>, or all command categories",
       "    when no category is specified.",
       "DELUSER <username> [<username> ...]",
       "    Delete a list of users.",
       "DRYRUN <username> <command> [<arg> ...]",
       "    Returns whether the user can execute the given command without executing the command.",
       "GETUSER <username>",
       "    Get the user's details.",
       "GENPASS [<bits>]",
       "    Generate a secure 256-bit user password. The optional `bits` argument can",
       "    be used to specify a different size.",
       "LIST",
       "    Show users details in config file format.",
       "LOAD",
       "    Reload users from the ACL file.",
       "LOG [<count> | RESET]",
       "    Show the ACL log entries.",
       "SAVE",
       "    Save the current config to the ACL file.",
       "SETUSER <username> <attribute> [<attribute> ...]",
       "    Create or modify a user with the specified attributes.",
       "USERS",
       "    List all the registered usernames.",
       "WHOAMI",
       "    Return the current connection username."});
}

constexpr uint32_t kOwnFlags = flag::kNoScript | flag::kLoading | flag::kStale;
constexpr uint32_t kFlags = kOwnFlags | flag::kAdmin;

// What grows with the users or the rules runs in the pool.
constexpr CommandRow kSubcommandTable[] = {
    {.name = "cat",
     .arity = -2,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1), as the commands do not grow",
     .summary = "The categories of commands, or the commands of one",
     .arguments = "categoryname:string?",
     .handler = acl_cat,
     .immediate = true},
    {.name = "deluser",
     .arity = -3,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the connections",
     .summary = "Delete users, and end their connections",
     .arguments = "username:string*",
     .handler = acl_deluser,
     .offload = true},
    {.name = "dryrun",
     .arity = -4,
     .flags = kFlags,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "Whether a user may run a command, without running it",
     .arguments = "username:string command:string arg:string?*",
     .handler = acl_dryrun,
     .offload = true},
    {.name = "genpass",
     .arity = -2,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "A password that nobody guesses",
     .arguments = "bits:integer?",
     .handler = acl_genpass,
     .immediate = true},
    {.name = "getuser",
     .arity = 3,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the passwords and patterns of the user",
     .summary = "What a user is and may do",
     .history = "6.2.0: Pub/Sub channel patterns.; 7.0.0: Selectors, and patterns as they are set.",
     .arguments = "username:string",
     .handler = acl_getuser,
     .offload = true},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = acl_help,
     .immediate = true},
    {.name = "list",
     .arity = 2,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the users",
     .summary = "All users, with the rules that make them",
     .handler = acl_list,
     .offload = true},
    {.name = "load",
     .arity = 2,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the users",
     .summary = "Take the users of the ACL file in place of those there are",
     .handler = acl_load,
     .offload = true},
    {.name = "log",
     .arity = -2,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the entries shown",
     .summary = "What was refused lately, or forget it",
     .arguments = "operation:oneof?(count:integer reset:pure-token=RESET)",
     .handler = acl_log,
     .offload = true},
    {.name = "save",
     .arity = 2,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the users",
     .summary = "Write the users to the ACL file",
     .handler = acl_save,
     .offload = true},
    {.name = "setuser",
     .arity = -3,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the rules that the user has and gets",
     .summary = "Make a user, or change one, by rules",
     .history = "6.2.0: Pub/Sub channel patterns.; 7.0.0: Selectors, and permissions of keys.",
     .arguments = "username:string rule:string?*",
     .handler = acl_setuser,
     .offload = true},
    {.name = "users",
     .arity = 2,
     .flags = kFlags,
     .since = "6.0.0",
     .complexity = "O(N) in the users",
     .summary = "The names of all users",
     .handler = acl_users,
     .offload = true},
    {.name = "whoami",
     .arity = 2,
     .flags = kOwnFlags,
     .since = "6.0.0",
     .complexity = "O(1)",
     .summary = "Which user this connection is",
     .handler = acl_whoami,
     .immediate = true},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "acl",
     .arity = -2,
     .since = "6.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "A container for commands about users and what they may do",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> acl_rows() {
  return kRows;
}

}  // namespace ingot::commands
