// The syntax of configuration files, which is that of redis.conf: a directive a line, its values
// behind it, in quotes where they need them. Reading of files and of the command line.
// Pure functions but for the files they read; any thread.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::settings {

// Splits a line into words. "double quotes" know \n \r \t \b \a \xHH and \ before any other
// character, 'single quotes' only \'. Nothing when a quote is not closed or runs into a word.
std::optional<std::vector<std::string>> split_words(std::string_view line);

// Without the white space around it.
std::string_view trimmed(std::string_view line);

// A file, or with wildcards in its name all files that match, one after another; none is fine.
// The error is a whole sentence.
std::expected<std::string, std::string> read_config_file(const std::string& path);

// "[file] [-] [--directive value ...]", as redis-server is called.
struct CommandLine {
  std::string file;  // absolute; empty: none
  bool from_stdin = false;
  std::string options;  // the directives as lines of a file
};
CommandLine parse_command_line(std::span<const std::string> arguments);

}  // namespace ingot::settings
