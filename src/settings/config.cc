// Loading, CONFIG GET, SET and REWRITE.
#include "src/settings/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <set>

#include "src/settings/config_file.h"
#include "src/settings/config_loader.h"
#include "src/settings/config_rewrite.h"
#include "src/settings/setting_pattern.h"
#include "src/settings/setting_values.h"
#include "src/settings/whole_file.h"

namespace ingot::settings {
namespace {

using Change = std::pair<std::string_view, std::string_view>;  // name and new value

std::string set_error(std::string_view name, std::string_view why) {
  return fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}", name, why);
}

bool may_set_protected(const Settings& settings, bool client_is_local) {
  const Permission permission = settings.enable_protected_configs;
  return permission == Permission::kYes || (permission == Permission::kLocal && client_is_local);
}

// Finds the settings of all changes, or says of the first that cannot be changed why.
Error find_all(std::span<const Change> changes, bool may_set_protected_ones,
               std::vector<FoundSetting>* found) {
  for (const auto& [name, value] : changes) {
    const FoundSetting setting = find_setting(name);
    if (setting.row == nullptr) {
      return fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{}'", name);
    }
    if (setting.row->is(kProtected) && !may_set_protected_ones) {
      return set_error(name, "can't set protected config");
    }
    if (setting.row->is(kImmutable)) return set_error(name, "can't set immutable config");
    const auto same = [&](const FoundSetting& other) { return other.name == setting.name; };
    if (std::ranges::any_of(*found, same)) return set_error(name, "duplicate parameter");
    found->push_back(setting);
  }
  return {};
}

std::vector<std::string> split_value(const SettingRow& row, std::string_view value) {
  if (!row.is(kManyValues)) return {std::string(value)};
  std::vector<std::string> values;
  if (value.empty()) return values;
  for (size_t end = value.find(' '); end != value.npos; end = value.find(' ')) {
    values.emplace_back(value.substr(0, end));
    value.remove_prefix(end + 1);
  }
  values.emplace_back(value);
  return values;
}

}  // namespace

Config::Config(std::string version)
    : version_(std::move(version)), settings_(std::make_shared<const Settings>()) {}

Error Config::load(std::span<const std::string> arguments) {
  const CommandLine line = parse_command_line(arguments);
  std::string text;
  if (!line.file.empty()) {
    auto content = read_config_file(line.file);
    if (!content) return content.error();
    text = std::move(*content);
  }
  if (line.from_stdin) text.append(std::istreambuf_iterator<char>(std::cin), {});
  if (!line.options.empty()) text += '\n' + line.options;

  Loader loader(version_, check_user_);
  if (Error error = loader.load(text)) return error;
  if (Error error = loader.finish()) return error;
  file_ = line.file;
  without_meaning_ = loader.without_meaning();
  settings_ = std::make_shared<const Settings>(loader.settings());
  return {};
}

std::shared_ptr<const Settings> Config::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

Config::Pairs Config::get(std::span<const std::string_view> patterns) const {
  const auto now = settings();
  Pairs pairs;
  const auto add = [&](std::string_view name, const SettingRow& row) {
    const auto same = [&](const auto& pair) { return same_word(pair.first, name); };
    if (std::ranges::none_of(pairs, same)) pairs.emplace_back(name, print_value(row, *now));
  };
  std::set<std::string_view> matched;  // a thousand patterns may match all of them
  for (const std::string_view pattern : patterns) {
    if (pattern.find_first_of("[*?") == pattern.npos) {
      const FoundSetting found = find_setting(pattern);
      if (found.row != nullptr) add(pattern, *found.row);
      continue;
    }
    for (const SettingRow* row : setting_rows()) {
      if (row->is(kHidden)) continue;
      for (const std::string_view name : {row->name, row->alias}) {
        if (name.empty() || matched.contains(name) || !matches_pattern(pattern, name)) continue;
        matched.insert(name);
        add(name, *row);
      }
    }
  }
  return pairs;
}

Error Config::set(std::span<const Change> changes, bool client_is_local) {
  const std::lock_guard change_lock(change_mutex_);
  const auto before = settings();
  std::vector<FoundSetting> found;
  if (Error error = find_all(changes, may_set_protected(*before, client_is_local), &found)) {
    return error;
  }
  auto after = std::make_shared<Settings>(*before);
  for (size_t i = 0; i < found.size(); i++) {
    const SettingRow& row = *found[i].row;
    const std::vector<std::string> values = split_value(row, changes[i].second);
    if (Error why = set_value(row, *after, values)) return set_error(found[i].name, *why);
    if (row.is(kVolatile)) ++after->volatile_changes;
  }
  if (apply_) {
    if (const auto refusal = apply_(*before, *after)) {
      return set_error(refusal->setting, refusal->why);
    }
  }
  const std::lock_guard lock(mutex_);
  settings_ = std::move(after);
  return {};
}

void Config::change(const std::function<void(Settings&)>& make) {
  const std::lock_guard change_lock(change_mutex_);
  auto after = std::make_shared<Settings>(*settings());
  make(*after);
  const std::lock_guard lock(mutex_);
  settings_ = std::move(after);
}

void Config::set_master(MasterAddress master) {
  change([&](Settings& settings) { settings.master = std::move(master); });
}

void Config::set_maxclients(unsigned clients) {
  change([&](Settings& settings) { settings.maxclients = clients; });
}

Error Config::rewrite() {
  if (file_.empty()) return "ERR The server is running without a config file";
  const std::lock_guard change_lock(change_mutex_);
  auto file = RewrittenFile::read(file_);
  if (!file) return "ERR Rewriting config file: " + file.error();
  const auto now = settings();
  const Settings defaults;
  for (const SettingRow* row : setting_rows()) {
    // `dir` always: its default is wherever the server is started.
    const bool differs =
        row->name == "dir" || print_value(*row, *now) != print_value(*row, defaults);
    file->put(*row, file_lines(*row, *now), differs);
  }
  if (describe_users_) {
    auto users = now->aclfile.empty() ? describe_users_() : std::vector<std::string>();
    if (!users) return "ERR Rewriting config file: " + users.error();
    file->put_users(std::move(*users));
  }
  if (Error error = replace_file(file_, file->text()))
    return "ERR Rewriting config file: " + *error;
  return {};
}

}  // namespace ingot::settings
