// The first line of scripts and of libraries of functions, in words. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ingot::script {

struct Shebang {
  std::string_view engine;                // with its "#!"
  std::vector<std::string_view> options;  // what stands behind it
  std::string_view rest;                  // of the text, from the line's end on
};

// Nothing when the text has no end of its first line.
inline std::optional<Shebang> read_shebang(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  Shebang shebang;
  shebang.rest = text.substr(end);
  std::string_view line = text.substr(0, end);
  while (!line.empty()) {
    const size_t begin = line.find_first_not_of(" \t\r\v\f");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r\v\f"));
    line.remove_prefix(word.size());
    if (shebang.engine.empty()) {
      shebang.engine = word;
    } else {
      shebang.options.push_back(word);
    }
  }
  return shebang;
}

}  // namespace ingot::script
