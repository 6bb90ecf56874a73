// Matching of setting names, with the meaning that Redis gives to a pattern.
#include "src/settings/setting_pattern.h"

#include <algorithm>

namespace ingot::settings {
namespace {

unsigned char lower(char c) {
  return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

// Takes "[...]" off the pattern, which stands behind its bracket, and tells whether it holds `c`.
// One without an end holds what follows to the end.
bool take_class(std::string_view* pattern, char c) {
  const bool negated = pattern->starts_with('^');
  if (negated) pattern->remove_prefix(1);
  bool found = false;
  while (!pattern->empty() && pattern->front() != ']') {
    if (pattern->front() == '\\' && pattern->size() > 1) {
      pattern->remove_prefix(1);
      found = found || lower(pattern->front()) == lower(c);
    } else if (pattern->size() >= 3 && (*pattern)[1] == '-') {
      const unsigned char first = lower((*pattern)[0]);
      const unsigned char last = lower((*pattern)[2]);
      found = found || (lower(c) >= std::min(first, last) && lower(c) <= std::max(first, last));
      pattern->remove_prefix(2);
    } else {
      found = found || lower(pattern->front()) == lower(c);
    }
    pattern->remove_prefix(1);
  }
  if (!pattern->empty()) pattern->remove_prefix(1);
  return found != negated;
}

// Takes what stands for one character off the pattern, which is not empty.
bool take_one(std::string_view* pattern, char c) {
  const char first = pattern->front();
  pattern->remove_prefix(1);
  if (first == '?') return true;
  if (first == '[') return take_class(pattern, c);
  if (first != '\\' || pattern->empty()) return lower(first) == lower(c);
  const char literal = pattern->front();
  pattern->remove_prefix(1);
  return lower(literal) == lower(c);
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view name) {
  // Where to go on when what follows the last star does not fit: the star takes one more.
  std::string_view star_pattern;
  std::string_view star_name;
  bool has_star = false;
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star_pattern = pattern;
      star_name = name;
      has_star = true;
      continue;
    }
    if (name.empty() && pattern.empty()) return true;
    if (!name.empty() && !pattern.empty() && take_one(&pattern, name.front())) {
      name.remove_prefix(1);
      continue;
    }
    if (!has_star || star_name.empty()) return false;
    star_name.remove_prefix(1);
    pattern = star_pattern;
    name = star_name;
  }
}

}  // namespace ingot::settings
