// How the values of settings are parsed, printed and written, by the kind of their row.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/settings/setting_rows.h"

namespace ingot::settings {

// Changes one setting, or leaves `settings` as it was and says why. `add`: see CustomValue.
[[nodiscard]] Error set_value(const SettingRow& row, Settings& settings,
                              std::span<const std::string> values, bool add = false);

// As CONFIG GET answers it.
std::string print_value(const SettingRow& row, const Settings& settings);

// The lines of a configuration file that set it ("name value"); none when no line can.
std::vector<std::string> file_lines(const SettingRow& row, const Settings& settings);

// Stores a value without a member of its own.
void keep_value(const SettingRow& row, Settings& settings, std::string value);

// "1gb" to bytes as Redis does it: a number too large wraps around in silence.
std::optional<uint64_t> parse_memory(std::string_view text);
// The largest unit that divides `bytes`: "1gb".
std::string format_memory(uint64_t bytes);
// The whole of `text` as strtoll takes it in this base; empty is 0.
std::optional<int64_t> parse_c_number(const std::string& text, int base = 10);
// Without spaces, signs but minus, or leading zeros.
std::optional<int64_t> parse_strict_number(std::string_view text);
// As short as it can be: "99.9".
std::string format_percentile(double percentile);
// The text in double quotes, escaped where needed.
std::string quote_word(std::string_view text);
// ASCII lower case.
std::string lower_case(std::string_view text);
bool same_word(std::string_view a, std::string_view b);  // in any case

}  // namespace ingot::settings
