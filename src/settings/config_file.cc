// The syntax of configuration files and of the command line.
#include "src/settings/config_file.h"

#include <fmt/format.h>
#include <glob.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "src/settings/setting_values.h"
#include "storage/durable_file.h"

namespace ingot::settings {
namespace {

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Walks over one line. A class because the quotes share the position.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : line_(line) {}

  bool more() {
    while (at_ < line_.size() && is_space(line_[at_])) at_++;
    return at_ < line_.size();
  }

  // False when a quote is wrong.
  bool read(std::string* word) {
    while (at_ < line_.size() && !is_space(line_[at_])) {
      const char c = line_[at_++];
      if (c == '"' || c == '\'') {
        const bool closed = c == '"' ? read_double(word) : read_single(word);
        return closed && (at_ == line_.size() || is_space(line_[at_]));
      }
      *word += c;
    }
    return true;
  }

 private:
  bool read_double(std::string* word) {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '"') return true;
      if (c == '\\' && at_ < line_.size()) {
        *word += escaped();
      } else {
        *word += c;
      }
    }
    return false;
  }

  bool read_single(std::string* word) {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '\'') return true;
      if (c == '\\' && at_ < line_.size() && line_[at_] == '\'') {
        *word += line_[at_++];
      } else {
        *word += c;
      }
    }
    return false;
  }

  char escaped() {
    const char c = line_[at_++];
    if (c == 'x' && at_ + 1 < line_.size()) {
      const int high = hex_digit(line_[at_]);
      const int low = hex_digit(line_[at_ + 1]);
      if (high >= 0 && low >= 0) {
        at_ += 2;
        return static_cast<char>(high * 16 + low);
      }
    }
    static constexpr std::string_view kLetters = "nrtba";
    static constexpr std::string_view kMeanings = "\n\r\t\b\a";
    const size_t known = kLetters.find(c);
    return known == kLetters.npos ? c : kMeanings[known];
  }

  std::string_view line_;
  size_t at_ = 0;
};

std::expected<std::string, std::string> read_one(const std::string& path) {
  std::string bytes;
  errno = 0;
  if (storage::read_file(path, &bytes).ok()) return bytes;
  return std::unexpected(
      fmt::format("Fatal error, can't open config file '{}': {}", path, std::strerror(errno)));
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  WordReader reader(line);
  while (reader.more()) {
    if (!reader.read(&words.emplace_back())) return {};
  }
  return words;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";  // all that parts words
  const size_t begin = line.find_first_not_of(kSpace);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
}

std::expected<std::string, std::string> read_config_file(const std::string& path) {
  if (path.find_first_of("*?[") == path.npos) return read_one(path);
  glob_t found = {};
  std::expected<std::string, std::string> all;
  if (glob(path.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && all; i++) {
      auto content = read_one(found.gl_pathv[i]);
      all = content ? std::move(*all) + *content + '\n' : std::move(content);
    }
  }
  globfree(&found);
  return all;
}

CommandLine parse_command_line(std::span<const std::string> arguments) {
  CommandLine line;
  size_t next = 0;
  if (!arguments.empty() && !arguments[0].starts_with('-')) {
    line.file = std::filesystem::absolute(arguments[0]).lexically_normal().string();
    next = 1;
  }
  // A directive without a value so far takes the next argument as its value, whatever it begins
  // with: "--requirepass --secret".
  bool wants_value = false;
  for (; next < arguments.size(); next++) {
    const std::string& argument = arguments[next];
    const bool is_last = next + 1 == arguments.size();
    if (argument == "-" && (next == 0 || is_last)) {
      line.from_stdin = true;
    } else if (!wants_value && argument.starts_with("--")) {
      if (!line.options.empty()) line.options += '\n';
      line.options += argument.substr(2) + ' ';
      const auto words = split_words(argument);
      wants_value = words && words->size() == 1;
      // Scripts write an empty list of save points as a bare --save.
      const bool is_bare = is_last || arguments[next + 1].starts_with("--");
      if (wants_value && is_bare && same_word(argument, "--save")) {
        line.options += "\"\"";
        wants_value = false;
      }
    } else {
      line.options += quote_word(argument) + ' ';
      wants_value = false;
    }
  }
  return line;
}

}  // namespace ingot::settings
