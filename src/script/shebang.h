// The first line of scripts and of libraries of functions, in words. Pure.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/settings/config_file.h"

namespace ingot::script {

struct Shebang {
  std::string engine;                // with its "#!"
  std::vector<std::string> options;  // what stands behind it
  std::string_view rest;             // of the text, from the line's end on
};

// Nothing when the text has no end of its first line, or that is not in words: a quote is not
// closed.
inline std::optional<Shebang> read_shebang(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  auto words = settings::split_words(text.substr(0, end));
  if (!words || words->empty()) return std::nullopt;
  Shebang shebang{.engine = std::move(words->front()), .options = {}, .rest = text.substr(end)};
  shebang.options.assign(std::make_move_iterator(words->begin() + 1),
                         std::make_move_iterator(words->end()));
  return shebang;
}

}  // namespace ingot::script
