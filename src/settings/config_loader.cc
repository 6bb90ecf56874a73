// Reads the lines of configuration files.
#include "src/settings/config_loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "src/settings/config_file.h"
#include "src/settings/log_file.h"
#include "src/settings/setting_values.h"

namespace ingot::settings {
namespace {

constexpr int kIncludeDepthMax = 16;
constexpr std::string_view kBadDirective = "Bad directive or wrong number of arguments";

// Redis takes these, with one value, and does nothing with them either.
bool is_obsolete(std::string_view name) {
  return name == "list-max-ziplist-entries" || name == "list-max-ziplist-value" ||
         name == "lua-replicate-commands";
}

}  // namespace

Loader::Loader(std::string version, CheckUser check_user)
    : version_(std::move(version)), check_user_(std::move(check_user)) {
  settings_.dir = std::filesystem::current_path().string();
}

Error Loader::load(std::string_view text) {
  return load_lines(text, 0);
}

Error Loader::load_lines(std::string_view text, int depth) {
  for (int number = 1; !text.empty(); number++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;

    auto words = split_words(line);
    Error why;
    if (!words) {
      why = "Unbalanced quotes in configuration line";
    } else {
      std::string& name = words->front();
      name = lower_case(name);
      if (name == "include" && words->size() == 2) {
        // Its message tells the place in the included file.
        if (Error error = include((*words)[1], depth)) return error;
      } else {
        why = apply(*words);
      }
    }
    if (why) {
      const auto where =
          fmt::format("Reading the configuration file, at line {}\n>>> '{}'\n", number, line);
      return fatal(where, *why);
    }
  }
  return {};
}

Error Loader::apply(const std::vector<std::string>& words) {
  const std::string& name = words[0];
  if (const FoundSetting found = find_setting(name); found.row != nullptr) {
    const bool add = !seen_.insert(found.row).second;
    if (found.row->is(kWithoutMeaning)) note_without_meaning(name);
    std::span<const std::string> values = std::span(words).subspan(1);
    // As Redis: `save "60 1"` is what `save 60 1` is.
    std::optional<std::vector<std::string>> within;
    if (found.row->is(kManyValues) && values.size() == 1 && !values[0].empty()) {
      within = split_words(values[0]);
      if (within) values = *within;
    }
    return set_value(*found.row, settings_, values, add);
  }
  if (is_obsolete(name) && words.size() == 2) {
    note_without_meaning(name);
    return {};
  }
  if (name == "rename-command" && words.size() == 3) {
    settings_.renamed_commands.emplace_back(words[1], words[2]);
    return {};
  }
  if (name == "sentinel" && words.size() > 1)
    return "sentinel directive while not in sentinel mode";
  if (name == "user" && words.size() > 1) return add_user(std::span(words).subspan(1));
  // To go on without them would lack what they bring.
  if (name == "loadmodule" && words.size() > 1) return "Modules are not supported";
  return std::string(kBadDirective);
}

Error Loader::add_user(std::span<const std::string> words) {
  if (check_user_) {
    if (Error why = check_user_(settings_, words)) return why;
  }
  settings_.users.emplace_back(words.begin(), words.end());
  return {};
}

Error Loader::include(const std::string& path, int depth) {
  if (depth == kIncludeDepthMax) {
    return fatal({}, fmt::format("Too many nested includes, at '{}'", path));
  }
  // Redis changes to `dir` while it reads, so a relative name begins there.
  const bool is_relative = !path.starts_with('/') && seen_.contains(find_setting("dir").row);
  auto content = read_config_file(is_relative ? settings_.dir + '/' + path : path);
  if (!content) return content.error();
  return load_lines(*content, depth + 1);
}

Error Loader::finish() {
  if (settings_.logfile.empty()) return {};
  const std::string path = std::filesystem::path(settings_.dir) / settings_.logfile;
  const int log = open_log_file(path.c_str());
  if (log < 0) return fatal({}, fmt::format("Can't open the log file: {}", std::strerror(errno)));
  ::close(log);
  return {};
}

void Loader::note_without_meaning(std::string_view name) {
  if (std::ranges::find(without_meaning_, name) == without_meaning_.end()) {
    without_meaning_.emplace_back(name);
  }
}

std::string Loader::fatal(std::string_view where, std::string_view why) const {
  return fmt::format("\n*** FATAL CONFIG FILE ERROR (Ingot {}) ***\n{}{}\n", version_, where, why);
}

}  // namespace ingot::settings
