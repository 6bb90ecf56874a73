// Redis' glob patterns: * ? [abc] [^a-z] and \ for the next character. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ingot::contract {

// As Redis' stringmatchlen, which lets no star match the empty text: only the empty pattern does.
bool glob_matches(std::string_view pattern, std::string_view text, bool ignore_case = false);

// What every match begins with: the pattern up to its first special character, unescaped.
struct LiteralPrefix {
  std::string text;
  bool is_whole = false;  // nothing but `text` matches
};
LiteralPrefix literal_prefix(std::string_view pattern);

}  // namespace ingot::contract
