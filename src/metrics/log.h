// The server's log, in Redis' line format: "123:M 21 Nov 2026 03:47:00.123 * text". One log for the
// process, as its standard output is; any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "src/settings/settings.h"

namespace ingot::metrics::log {

// Where lines go, and from which level on: logfile (empty: standard output), syslog, loglevel.
// Answers why it cannot, and then leaves the log as it was.
[[nodiscard]] std::string configure(const settings::Settings& settings);
void set_level(settings::LogLevel level);
void write(settings::LogLevel level, std::string_view line);

template <typename... Args>
void notice(fmt::format_string<Args...> format, Args&&... args) {
  write(settings::LogLevel::kNotice, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(settings::LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void verbose(fmt::format_string<Args...> format, Args&&... args) {
  write(settings::LogLevel::kVerbose, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ingot::metrics::log
