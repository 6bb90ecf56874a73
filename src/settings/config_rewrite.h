// A configuration file that is being rewritten: comments, order and what we do not understand stay,
// lines change in place, new ones follow at the end under a marker. One thread.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/settings/setting_rows.h"

namespace ingot::settings {

class RewrittenFile {
 public:
  // A file that is not there yet is empty; the error is the system's.
  static std::expected<RewrittenFile, std::string> read(const std::string& path);

  // Puts `lines` where the file sets the setting now; those that find no place there are added
  // when `must_be_there`. Lines that set it and are left over vanish.
  void put(const SettingRow& row, std::vector<std::string> lines, bool must_be_there);

  std::string text() const;  // with several empty lines in a row made one

  // Replaces the file, so that whoever reads it, even after a power loss, sees the old or the new
  // one. The error is the system's.
  [[nodiscard]] Error write(const std::string& path) const;

 private:
  void add_line(std::string_view line);

  std::vector<std::string> lines_;
  std::map<const SettingRow*, std::vector<size_t>> places_;  // lines that set it
  bool has_marker_ = false;
};

}  // namespace ingot::settings
