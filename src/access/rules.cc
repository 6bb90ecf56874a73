// Applying the rules to a user, one by one.
#include "src/access/rules.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "src/access/passwords.h"
#include "src/contract/args.h"
#include "src/settings/config_file.h"

namespace ingot::access {
namespace {

using contract::equals_ignore_case;

// Fewer are compared one by one.
constexpr size_t kListedMax = 16;

struct Permissions {
  bool read = true;
  bool write = true;
  std::string_view glob;
};

// "~glob", "%R~glob", "%W~glob", "%RW~glob".
std::optional<Permissions> parse_key_rule(std::string_view rule) {
  if (rule[0] == '~') return Permissions{.glob = rule.substr(1)};
  Permissions given{.read = false, .write = false, .glob = {}};
  for (size_t at = 1; at < rule.size(); ++at) {
    const int letter = std::toupper(static_cast<unsigned char>(rule[at]));
    if (letter == 'R' && !given.read) {
      given.read = true;
    } else if (letter == 'W' && !given.write) {
      given.write = true;
    } else if (letter == '~' && (given.read || given.write)) {
      given.glob = rule.substr(at + 1);
      return given;
    } else {
      return std::nullopt;
    }
  }
  if (!given.read && !given.write) return std::nullopt;
  return given;  // as in Redis the empty pattern
}

}  // namespace

std::string_view explain(Fault fault) {
  switch (fault) {
    case Fault::kUnknownCommand:
      return "Unknown command or category name in ACL";
    case Fault::kSyntax:
      return "Syntax error";
    case Fault::kPatternAfterAll:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
             "not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    case Fault::kChannelAfterAll:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
             "does not have any effect. Try 'resetchannels' to start with an empty list of "
             "channels";
    case Fault::kNoSuchPassword:
      return "The password you are trying to remove from the user does not exist";
    case Fault::kBadHash:
      return "The password hash must be exactly 64 characters and contain only lowercase "
             "hexadecimal characters";
    case Fault::kArgumentOfSubcommand:
      return "Allowing first-arg of a subcommand is not supported";
  }
  return "Wrong format";
}

bool has_spaces(std::string_view text) {
  return std::ranges::any_of(text,
                             [](unsigned char c) { return std::isspace(c) != 0 || c == '\0'; });
}

template <typename List, typename Text>
std::optional<size_t> SelectorRules::Places::find(const List& list, std::string_view wanted,
                                                  const Text& text_of) {
  if (list.size() <= kListedMax) {
    const auto found = std::ranges::find(list, wanted, text_of);
    if (found == list.end()) return std::nullopt;
    return static_cast<size_t>(found - list.begin());
  }
  for (size_t i = by_text_.size(); i < list.size(); ++i)
    by_text_.emplace(std::invoke(text_of, list[i]), i);
  const auto found = by_text_.find(std::string(wanted));
  if (found == by_text_.end()) return std::nullopt;
  return found->second;
}

std::optional<Fault> SelectorRules::apply(std::string_view rule) {
  if (equals_ignore_case(rule, "allkeys") || rule == "~*") {
    selector_.all_keys = true;
    selector_.keys.clear();
    keys_.clear();
  } else if (equals_ignore_case(rule, "resetkeys")) {
    selector_.all_keys = false;
    selector_.keys.clear();
    keys_.clear();
  } else if (equals_ignore_case(rule, "allchannels") || rule == "&*") {
    selector_.all_channels = true;
    selector_.channels.clear();
    channels_.clear();
  } else if (equals_ignore_case(rule, "resetchannels")) {
    selector_.all_channels = false;
    selector_.channels.clear();
    channels_.clear();
  } else if (equals_ignore_case(rule, "allcommands") || equals_ignore_case(rule, "+@all")) {
    set_all_commands(true);
  } else if (equals_ignore_case(rule, "nocommands") || equals_ignore_case(rule, "-@all")) {
    set_all_commands(false);
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return add_key(rule);
  } else if (rule.starts_with('&')) {
    return add_channel(rule);
  } else if (rule.starts_with("+@") || rule.starts_with("-@")) {
    const auto category = CommandIds::find_category(rule.substr(2));
    if (!category) return Fault::kUnknownCommand;
    return change(ids_.changed_by(*category), rule[0] == '+');
  } else if (rule.starts_with('+')) {
    return allow(rule.substr(1));
  } else if (rule.starts_with('-')) {
    const auto id = ids_.find(rule.substr(1));
    if (!id) return Fault::kUnknownCommand;
    return change(ids_.with_subcommands(*id), false);
  } else {
    return Fault::kSyntax;
  }
  return std::nullopt;
}

void SelectorRules::set_all_commands(bool allowed) {
  selector_.all_commands = selector_.future_commands = allowed;
  allowed ? selector_.commands.set() : selector_.commands.reset();
  selector_.first_args.clear();
}

std::optional<Fault> SelectorRules::change(const CommandSet& commands, bool allowed) {
  if (allowed) {
    selector_.commands |= commands;
  } else {
    selector_.commands &= ~commands;
    if (commands.any()) selector_.all_commands = false;
  }
  std::erase_if(selector_.first_args,
                [&](const auto& of_command) { return commands.test(of_command.first); });
  return std::nullopt;
}

// "get", "config|set", or "select|0": a first argument of a command without subcommands.
std::optional<Fault> SelectorRules::allow(std::string_view command) {
  const size_t bar = command.rfind('|');
  if (bar == std::string_view::npos) {
    const auto id = ids_.find(command);
    if (!id) return Fault::kUnknownCommand;
    return change(ids_.with_subcommands(*id), true);
  }
  const auto id = ids_.find(command.substr(0, bar));
  if (!id) return Fault::kUnknownCommand;
  if (ids_.is_subcommand(*id)) return Fault::kArgumentOfSubcommand;
  if (bar + 1 == command.size()) return Fault::kSyntax;
  if (ids_.has_subcommands(*id)) {
    const auto subcommand = ids_.find(command);
    if (!subcommand) return Fault::kUnknownCommand;
    return change(ids_.with_subcommands(*subcommand), true);
  }
  std::vector<std::string>& arguments = selector_.first_args[*id];
  const std::string_view argument = command.substr(bar + 1);
  const auto same = [&](const std::string& other) { return equals_ignore_case(other, argument); };
  if (std::ranges::none_of(arguments, same)) arguments.emplace_back(argument);
  return std::nullopt;
}

std::optional<Fault> SelectorRules::add_key(std::string_view rule) {
  if (selector_.all_keys) return Fault::kPatternAfterAll;
  const auto given = parse_key_rule(rule);
  if (!given || has_spaces(given->glob)) return Fault::kSyntax;
  if (const auto place = keys_.find(selector_.keys, given->glob, &KeyPattern::glob)) {
    selector_.keys[*place].read |= given->read;
    selector_.keys[*place].write |= given->write;
    return std::nullopt;
  }
  selector_.keys.push_back(
      {.glob = std::string(given->glob), .read = given->read, .write = given->write});
  return std::nullopt;
}

std::optional<Fault> SelectorRules::add_channel(std::string_view rule) {
  if (selector_.all_channels) return Fault::kChannelAfterAll;
  const std::string_view glob = rule.substr(1);
  if (has_spaces(glob)) return Fault::kSyntax;
  if (!channels_.find(selector_.channels, glob, std::identity{})) {
    selector_.channels.emplace_back(glob);
  }
  return std::nullopt;
}

std::optional<Fault> UserRules::apply(std::string_view rule) {
  if (rule.empty() || apply_flag(rule)) return std::nullopt;
  if (std::string_view("><#!").find(rule[0]) != std::string_view::npos)
    return change_password(rule);
  if (rule.starts_with('(') && rule.ends_with(')')) return add_selector(rule);
  return root_.apply(rule);
}

// False when the rule is another kind of rule.
bool UserRules::apply_flag(std::string_view rule) {
  if (equals_ignore_case(rule, "on")) {
    user_.enabled = true;
  } else if (equals_ignore_case(rule, "off")) {
    user_.enabled = false;
  } else if (equals_ignore_case(rule, "skip-sanitize-payload")) {
    user_.sanitize = User::Sanitize::kSkip;
  } else if (equals_ignore_case(rule, "sanitize-payload")) {
    user_.sanitize = User::Sanitize::kCheck;
  } else if (equals_ignore_case(rule, "nopass")) {
    user_.nopass = true;
    user_.passwords.clear();
  } else if (equals_ignore_case(rule, "resetpass")) {
    user_.nopass = false;
    user_.passwords.clear();
  } else if (equals_ignore_case(rule, "clearselectors")) {
    user_.selectors.clear();
  } else if (equals_ignore_case(rule, "reset")) {
    reset();
  } else {
    return false;
  }
  return true;
}

void UserRules::reset() {
  user_.enabled = user_.nopass = false;
  user_.passwords.clear();
  user_.sanitize = User::Sanitize::kCheck;
  user_.selectors.clear();
  for (const std::string_view rule : {"resetkeys", "resetchannels", "-@all"})
    (void)root_.apply(rule);
  user_.root.all_channels = context_.all_channels;
}

std::optional<Fault> UserRules::change_password(std::string_view rule) {
  const bool is_hashed = rule[0] == '#' || rule[0] == '!';
  if (is_hashed && !is_password_hash(rule.substr(1))) return Fault::kBadHash;
  const std::string hash = is_hashed ? std::string(rule.substr(1)) : hash_password(rule.substr(1));
  const auto found = std::ranges::find(user_.passwords, hash);
  const bool is_there = found != user_.passwords.end();
  if (rule[0] == '<' || rule[0] == '!') {
    if (!is_there) return Fault::kNoSuchPassword;
    user_.passwords.erase(found);
    return std::nullopt;
  }
  if (!is_there) user_.passwords.push_back(hash);
  user_.nopass = false;
  return std::nullopt;
}

std::optional<Fault> UserRules::add_selector(std::string_view rules) {
  Selector selector;
  selector.all_channels = context_.all_channels;
  SelectorRules applied(selector, context_.ids);
  // As in Redis, unbalanced quotes make an empty selector, which allows nothing.
  const auto words = settings::split_words(rules.substr(1, rules.size() - 2));
  for (const std::string& word : words.value_or(std::vector<std::string>())) {
    if (const auto fault = applied.apply(word)) return fault;
  }
  user_.selectors.push_back(std::move(selector));
  return std::nullopt;
}

std::expected<std::vector<std::string>, size_t> join_selectors(
    std::span<const std::string_view> arguments) {
  std::vector<std::string> joined;
  constexpr size_t kNone = std::string_view::npos;
  size_t open = kNone;  // where the selector begins
  std::string selector;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with('(') && !argument.ends_with(')')) {
      selector = argument;
      open = i;
    } else if (open != kNone) {
      selector.append(" ").append(argument);
      if (argument.ends_with(')')) {
        joined.push_back(std::move(selector));
        open = kNone;
      }
    } else {
      joined.emplace_back(argument);
    }
  }
  if (open != kNone) return std::unexpected(open);
  return joined;
}

}  // namespace ingot::access
