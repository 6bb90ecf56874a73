// Turns the text of configuration files into Settings, as redis-server reads them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/settings/config.h"
#include "src/settings/setting_rows.h"

namespace ingot::settings {

// Used once, by one thread.
class Loader {
 public:
  // `version` stands in error messages: "0.1.0".
  // `check_user` may be empty.
  explicit Loader(std::string version, CheckUser check_user = {});

  // Reads the lines and the files that they include. The error is what to print before giving up:
  // where it is wrong, and why.
  [[nodiscard]] Error load(std::string_view text);

  // Checks what only the whole tells. Call it after the last load().
  [[nodiscard]] Error finish();

  const Settings& settings() const { return settings_; }
  // Directives that were given and mean nothing here, each once, in the order given.
  const std::vector<std::string>& without_meaning() const { return without_meaning_; }

 private:
  Error load_lines(std::string_view text, int depth);
  Error apply(const std::vector<std::string>& words);
  Error add_user(std::span<const std::string> words);
  Error include(const std::string& path, int depth);
  void note_without_meaning(std::string_view name);
  std::string fatal(std::string_view where, std::string_view why) const;

  const std::string version_;
  const CheckUser check_user_;
  Settings settings_;
  std::set<const SettingRow*> seen_;
  std::vector<std::string> without_meaning_;
};

}  // namespace ingot::settings
