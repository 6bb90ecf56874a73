// Reading and writing users as lines of text.
#include "src/access/user_file.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "src/access/describe.h"
#include "src/metrics/log.h"
#include "src/settings/config_file.h"
#include "src/settings/whole_file.h"

namespace ingot::access {
namespace {

using Words = std::vector<std::string_view>;

// At every single space: as in Redis two of them stand for an empty word, which is no rule.
Words split_at_spaces(std::string_view line) {
  Words words;
  for (size_t end = line.find(' '); end != line.npos; end = line.find(' ')) {
    words.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  words.push_back(line);
  return words;
}

std::string_view without(std::string_view around, std::string_view text) {
  const size_t begin = text.find_first_not_of(around);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(around) - begin + 1);
}

bool all_channels_by_default(const settings::Settings& settings) {
  return settings.acl_pubsub_default == settings::AclPubsub::kAllChannels;
}

// One line of an ACL file, added to the users. Answers what is wrong with it.
std::string add_line(std::string_view line, const std::string& place, const RuleContext& context,
                     std::map<std::string, User>* users) {
  const Words words = split_at_spaces(line);
  if (words[0] != "user" || words.size() < 2) {
    return place + " should start with user keyword followed by the username. ";
  }
  if (has_spaces(words[1])) {
    return fmt::format("'{}: username '{}' contains invalid characters. ", place, words[1]);
  }
  const auto [at, is_new] = users->emplace(std::string(words[1]), new_user(context.all_channels));
  if (!is_new) {
    return fmt::format("WARNING: Duplicate user '{}' found on line {}. ", words[1],
                       place.substr(place.rfind(':') + 1));
  }
  const auto rules = join_selectors(std::span(words).subspan(2));
  if (!rules) return place + ": Unmatched parenthesis in selector definition.";
  std::string errors;
  bool any_other = false;
  UserRules applied(at->second, context);
  for (const std::string& rule : *rules) {
    const auto fault = applied.apply(without("\t\r\n", rule));
    if (!fault) continue;
    if (*fault == Fault::kUnknownCommand) {
      errors +=
          fmt::format("{}: Error in applying operation '{}': {}. ", place, rule, explain(*fault));
    } else if (!std::exchange(any_other, true)) {  // what follows may be wrong because of it
      errors += fmt::format("{}: {}. ", place, explain(*fault));
    }
  }
  return errors;
}

// What Redis writes without a look: a server would not start with it.
bool reads_back(const Words& words, const std::string& line, const CommandIds& ids) {
  if (words.size() < 2) return false;
  const auto rules = join_selectors(std::span(words).subspan(2));
  if (!rules) return false;
  User user = new_user(/*all_channels=*/false);
  UserRules applied(user, {.ids = ids});
  for (const std::string& rule : *rules) {
    if (applied.apply(rule)) return false;
  }
  return fmt::format("user {} {}", words[1], describe(user, ids)) == line;
}

std::string cannot_be_written(const std::string& line) {
  return "no file can hold the rules of this user: " + line;
}

std::optional<std::string> add_configured(Users& users, const settings::Settings& settings) {
  const RuleContext context{.ids = users.ids(), .all_channels = all_channels_by_default(settings)};
  for (const std::vector<std::string>& line : settings.users) {
    const std::string& name = line[0];
    if (has_spaces(name)) return "Spaces not allowed in ACL usernames";
    User user = new_user(context.all_channels);
    UserRules applied(user, context);
    // Redis resets the default user, which is not new; reset leaves its mark.
    if (name == kDefaultName) (void)applied.apply("reset");
    const Words words(line.begin() + 1, line.end());
    const auto rules = join_selectors(words);
    if (!rules) return "Unmatched parenthesis in the rules for the user named '" + name + "'";
    for (const std::string& rule : *rules) {
      if (const auto fault = applied.apply(rule)) {
        return fmt::format("Error loading ACL rule '{}' for the user named '{}': {}", rule, name,
                           explain(*fault));
      }
    }
    if (!user.enabled) {
      metrics::log::notice(
          "The user '{}' is disabled (there is no 'on' modifier in the user description). Make "
          "sure this is not a configuration error.",
          name);
    }
    users.put(name, std::move(user));
  }
  return std::nullopt;
}

}  // namespace

std::string acl_file(const settings::Settings& settings) {
  if (settings.aclfile.empty()) return {};
  return (std::filesystem::path(settings.dir) / settings.aclfile).string();
}

std::expected<std::map<std::string, User>, std::string> parse_users(std::string_view text,
                                                                    std::string_view file,
                                                                    const RuleContext& context) {
  std::map<std::string, User> users;
  std::string errors;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without(" \t\r\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty())
      errors += add_line(line, fmt::format("{}:{}", file, number), context, &users);
  }
  if (errors.empty()) return users;
  return std::unexpected(errors +
                         "WARNING: ACL errors detected, no change to the previously active ACL "
                         "rules was performed");
}

std::optional<std::string> load_users(Users& users, const settings::Settings& settings) {
  const auto text = settings::read_whole_file(acl_file(settings));
  if (!text) {
    return fmt::format("Error loading ACLs, opening file '{}': {}", settings.aclfile,
                       std::strerror(text.error()));
  }
  auto loaded =
      parse_users(*text, settings.aclfile,
                  {.ids = users.ids(), .all_channels = all_channels_by_default(settings)});
  if (!loaded) return std::move(loaded.error());
  users.replace(std::move(*loaded));
  return std::nullopt;
}

std::optional<std::string> save_users(const Users& users, const settings::Settings& settings) {
  const std::lock_guard lock(users.file_mutex);
  std::string text;
  for (const std::string& line : user_lines(users)) {
    if (!reads_back(split_at_spaces(line), line, users.ids())) return cannot_be_written(line);
    text += line + '\n';
  }
  return settings::replace_file(acl_file(settings), text);
}

std::vector<std::string> user_lines(const Users& users) {
  std::vector<std::string> lines;
  for (const AccountPtr& account : users.all()) {
    lines.push_back("user " + account->name + ' ' + describe(*account->user(), users.ids()));
  }
  return lines;
}

std::expected<std::vector<std::string>, std::string> config_user_lines(const Users& users) {
  std::vector<std::string> lines = user_lines(users);
  for (const std::string& line : lines) {
    const auto words = settings::split_words(line);
    if (!words || !reads_back(Words(words->begin(), words->end()), line, users.ids())) {
      return std::unexpected(cannot_be_written(line));
    }
  }
  return lines;
}

std::optional<std::string> check_user_line(const CommandIds& ids,
                                           const settings::Settings& settings,
                                           std::span<const std::string> words) {
  const auto refused = [](std::string_view word, std::string_view why) {
    return fmt::format("Error in user declaration '{}': {}", word, why);
  };
  for (const std::vector<std::string>& line : settings.users) {
    if (line[0] == words[0]) {
      return refused(words[0],
                     "Duplicate user found. A user can only be defined once in config files");
    }
  }
  const bool all_channels = all_channels_by_default(settings);
  const Words given(words.begin() + 1, words.end());
  const auto rules = join_selectors(given);
  if (!rules) return refused(given[rules.error()], "Unmatched parenthesis");
  User user = new_user(all_channels);
  UserRules applied(user, {.ids = ids, .all_channels = all_channels});
  for (const std::string& rule : *rules) {
    const auto fault = applied.apply(rule);
    if (fault && *fault != Fault::kUnknownCommand) return refused(rule, explain(*fault));
  }
  return std::nullopt;
}

std::optional<std::string> set_up_users(Users& users, const settings::Settings& settings) {
  if (!settings.aclfile.empty() && !settings.users.empty()) {
    return "Configuring Redis with users defined in redis.conf and at the same setting an ACL file "
           "path is invalid. This setup is very likely to lead to configuration errors and "
           "security holes, please define either an ACL file or declare users directly in your "
           "redis.conf, but not both.";
  }
  users.set_default_password(settings.requirepass);
  if (const auto error = add_configured(users, settings)) {
    metrics::log::warning("{}", *error);
    return "Critical error while loading ACLs. Exiting.";
  }
  if (settings.aclfile.empty()) return std::nullopt;
  if (const auto errors = load_users(users, settings)) {
    return "Aborting Redis startup because of ACL errors: " + *errors;
  }
  return std::nullopt;
}

}  // namespace ingot::access
