// Reading and replacing files as a whole: those that an operator edits and the server writes back.
// Any thread; both wait for the disk.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "src/settings/setting_rows.h"

namespace ingot::settings {

// The error is errno.
std::expected<std::string, int> read_whole_file(const std::string& path);

// Replaces the file, so that whoever reads it, even after a power loss, sees the old or the new
// one. It keeps its permissions; a file that was not there is its owner's alone. The error is the
// system's.
[[nodiscard]] Error replace_file(const std::string& path, std::string_view content);

}  // namespace ingot::settings
