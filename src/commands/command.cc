// COMMAND: what the server says of its commands, all of it from their rows.
#include <algorithm>
#include <optional>
#include <string>

#include "src/commands/command_docs.h"
#include "src/commands/families.h"
#include "src/contract/glob.h"
#include "src/contract/help.h"
#include "src/contract/table.h"

namespace ingot::commands {
namespace {

using contract::Table;

void reply_infos(SessionContext& context, Args names) {
  const Table& table = context.table;
  if (names.empty()) {
    context.reply.array(table.rows().size());
    for (const CommandRow* row : table.rows()) reply_info(context.reply, nullptr, *row);
    return;
  }
  context.reply.array(names.size());
  for (std::string_view name : names) {
    contract::Resolved found = table.find_named(name);
    if (found.row == nullptr) {
      context.reply.null();
    } else {
      reply_info(context.reply, found.parent, *found.row);
    }
  }
}

void command_all(SessionContext& context, Args) {
  reply_infos(context, {});
}
void command_info(SessionContext& context, Args args) {
  reply_infos(context, args.subspan(2));
}

void command_count(SessionContext& context, Args) {
  context.reply.integer(static_cast<int64_t>(context.table.rows().size()));
}

void command_docs(SessionContext& context, Args args) {
  const Table& table = context.table;
  std::vector<contract::Resolved> found;
  if (args.size() == 2) {
    for (const CommandRow* row : table.rows()) found.push_back({.row = row, .parent = nullptr});
  }
  for (std::string_view name : args.subspan(2)) {
    contract::Resolved one = table.find_named(name);
    if (one.row != nullptr) found.push_back(one);
  }
  context.reply.map(found.size());
  for (const auto& one : found) reply_docs(context.reply, one.parent, *one.row);
}

// Which names COMMAND LIST shows.
struct Filter {
  uint32_t acl = 0;
  std::optional<std::string_view> pattern;
  bool nothing = false;

  bool takes(const CommandRow& row, const std::string& name) const {
    if (nothing) return false;
    if (pattern) return contract::glob_matches(*pattern, name, /*ignore_case=*/true);
    return acl == 0 || (row.acl & acl) != 0;
  }
};

void command_list(SessionContext& context, Args args) {
  Filter filter;
  contract::ArgReader reader(args, 2);
  if (reader.word("filterby", 2)) {
    if (reader.word("module")) {
      (void)reader.text();
      filter.nothing = true;  // there are no modules
    } else if (reader.word("aclcat")) {
      filter.acl = acl_category(reader.text());
      filter.nothing = filter.acl == 0;
    } else if (reader.word("pattern")) {
      filter.pattern = reader.text();
    }
  }
  if (!reader.done()) return context.reply.error(reader.error());
  std::vector<std::string> names;
  for (const CommandRow* row : context.table.rows()) {
    std::string name(row->name);
    if (filter.takes(*row, name)) names.push_back(name);
    for (const CommandRow& subcommand : row->subcommands) {
      std::string full = contract::full_name(row, subcommand);
      if (filter.takes(subcommand, full)) names.push_back(full);
    }
  }
  context.reply.array(names.size());
  for (const std::string& name : names) context.reply.bulk(name);
}

void reply_keys(SessionContext& context, Args args, bool with_flags) {
  Args line = args.subspan(2);
  std::string error;
  contract::Resolved found = context.table.resolve(line, &error);
  if (found.row == nullptr) return context.reply.error("ERR Invalid command specified");
  const auto is_key = [](const contract::KeySpec& spec) {
    return (spec.flags & contract::key::kNotKey) == 0;
  };
  if (std::ranges::none_of(found.row->keys, is_key)) {
    return context.reply.error("ERR The command has no key arguments");
  }
  if (!error.empty()) {
    return context.reply.error("ERR Invalid number of arguments specified for command");
  }
  auto keys = contract::keys_of(*found.row, line);
  if (keys.empty() && (found.row->flags & contract::flag::kNoMandatoryKeys) == 0) {
    return context.reply.error("ERR Invalid arguments specified for command");
  }
  context.reply.array(keys.size());
  for (const contract::KeyAt& key : keys) {
    if (!with_flags) {
      context.reply.bulk(line[key.index]);
      continue;
    }
    context.reply.array(2);
    context.reply.bulk(line[key.index]);
    uint32_t flags = key.flags;
    if (found.row->key_flags != nullptr) flags = found.row->key_flags(line);
    auto names = key_flag_names(flags);
    context.reply.set(names.size());
    for (std::string_view name : names) context.reply.simple(name);
  }
}

void command_getkeys(SessionContext& context, Args args) {
  reply_keys(context, args, false);
}
void command_getkeysandflags(SessionContext& context, Args args) {
  reply_keys(context, args, true);
}

void command_help(SessionContext& context, Args) {
  contract::reply_help(
      context.reply, "COMMAND",
      {"(no subcommand)", "    Return details about all Redis commands.", "COUNT",
       "    Return the total number of commands in this Redis server.", "LIST",
       "    Return a list of all commands in this Redis server.", "INFO [<command-name> ...]",
       "    Return details about multiple Redis commands.",
       "    If no command names are given, documentation details for all",
       "    commands are returned.", "DOCS [<command-name> ...]",
       "    Return documentation details about multiple Redis commands.",
       "    If no command names are given, documentation details for all",
       "    commands are returned.", "GETKEYS <full-command>",
       "    Return the keys from a full Redis command.", "GETKEYSANDFLAGS <full-command>",
       "    Return the keys and the access flags from a full Redis command."});
}

constexpr uint32_t kFlags = contract::flag::kLoading | contract::flag::kStale;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "getkeys",
     .arity = -4,
     .flags = kFlags,
     .since = "2.8.13",
     .complexity = "O(N) in the arguments",
     .summary = "Find the keys of a command line",
     .handler = command_getkeys,
     .immediate = true},
    {.name = "info",
     .arity = -2,
     .flags = kFlags,
     .since = "2.8.13",
     .complexity = "O(N) in the commands named",
     .summary = "Describe commands: arity, flags, keys",
     .history = "7.0.0: Without a name it describes them all.",
     .tips = "nondeterministic_output_order",
     .arguments = "command-name:string?*",
     .handler = command_info,
     .immediate = true},
    {.name = "list",
     .arity = -2,
     .flags = kFlags,
     .since = "7.0.0",
     .complexity = "O(N) in the commands there are",
     .summary = "The names of the commands",
     .tips = "nondeterministic_output_order",
     .arguments = "filterby:oneof=FILTERBY?(module-name:string=MODULE category:string=ACLCAT "
                  "pattern:pattern=PATTERN)",
     .handler = command_list,
     .immediate = true},
    {.name = "count",
     .arity = 2,
     .flags = kFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "The number of commands",
     .handler = command_count,
     .immediate = true},
    {.name = "docs",
     .arity = -2,
     .flags = kFlags,
     .since = "7.0.0",
     .complexity = "O(N) in the commands named",
     .summary = "Document commands: purpose, history, arguments",
     .tips = "nondeterministic_output_order",
     .arguments = "command-name:string?*",
     .handler = command_docs,
     .immediate = true},
    {.name = "getkeysandflags",
     .arity = -4,
     .flags = kFlags,
     .since = "7.0.0",
     .complexity = "O(N) in the arguments",
     .summary = "Find the keys of a command line and what happens to them",
     .handler = command_getkeysandflags,
     .immediate = true},
    {.name = "help",
     .arity = 2,
     .flags = kFlags,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = command_help,
     .immediate = true},
};
constexpr auto kSubcommands =
    contract::family({.group = "server", .acl = contract::acl::kConnection}, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "command",
     .arity = -1,
     .flags = kFlags,
     .since = "2.8.13",
     .complexity = "O(N) in the commands there are",
     .summary = "Describe every command",
     .tips = "nondeterministic_output_order",
     .handler = command_all,
     .subcommands = kSubcommands,
     .immediate = true},
};
constexpr auto kRows =
    contract::family({.group = "server", .acl = contract::acl::kConnection}, kTable);

}  // namespace

std::span<const CommandRow> command_rows() {
  return kRows;
}

}  // namespace ingot::commands
