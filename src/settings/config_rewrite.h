// A configuration file that is being rewritten: comments, order and what we do not understand stay,
// lines change in place, new ones follow at the end under a marker. One thread.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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

  // The same for "user" lines, which are no setting.
  void put_users(std::vector<std::string> lines) { put_at(user_places_, std::move(lines), true); }

  std::string text() const;  // with several empty lines in a row made one

 private:
  void add_line(std::string_view line);
  void put_at(const std::vector<size_t>& places, std::vector<std::string> lines,
              bool must_be_there);

  std::vector<std::string> lines_;
  std::map<const SettingRow*, std::vector<size_t>> places_;  // lines that set it
  std::vector<size_t> user_places_;
  bool has_marker_ = false;
};

}  // namespace ingot::settings
