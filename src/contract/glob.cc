// The matcher of globs, and the literal beginning of one.
#include "src/contract/glob.h"

#include <algorithm>
#include <cctype>

namespace ingot::contract {

namespace {

class Matcher {
 public:
  Matcher(std::string_view pattern, std::string_view text, bool ignore_case)
      : pattern_(pattern), text_(text), ignore_case_(ignore_case) {}

  // Only the last star is ever returned to: what an earlier one took in shorter form, the later
  // one reaches as well. So this takes at most pattern x text steps.
  bool run() {
    size_t star = std::string_view::npos;  // behind the last star
    size_t retry = 0;                      // where its rest is tried next
    size_t p = 0;
    size_t t = 0;
    while (t < text_.size()) {
      if (p < pattern_.size() && pattern_[p] == '*') {
        star = ++p;
        retry = t;
        continue;
      }
      size_t next = p;
      if (p < pattern_.size() && matches_one(&next, text_[t])) {
        p = next;
        ++t;
        continue;
      }
      if (star == std::string_view::npos) return false;
      p = star;
      t = ++retry;
    }
    while (p < pattern_.size() && pattern_[p] == '*') ++p;
    return p >= pattern_.size();
  }

 private:
  char fold(char c) const {
    return ignore_case_ ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : c;
  }

  // One element of the pattern at *p against one character; moves *p behind the element.
  bool matches_one(size_t* p, char c) const {
    switch (pattern_[*p]) {
      case '?':
        ++*p;
        return true;
      case '[':
        return matches_class(p, c);
      case '\\':
        if (*p + 1 < pattern_.size()) ++*p;
        [[fallthrough]];
      default:
        return fold(pattern_[(*p)++]) == fold(c);
    }
  }

  // An unclosed class reaches to the end of the pattern, as in Redis.
  bool matches_class(size_t* p, char c) const {
    size_t at = *p + 1;
    bool negated = at < pattern_.size() && pattern_[at] == '^';
    if (negated) ++at;
    bool found = false;
    for (; at < pattern_.size() && pattern_[at] != ']'; ++at) {
      if (pattern_[at] == '\\' && at + 1 < pattern_.size()) {
        ++at;
        found = found || pattern_[at] == c;
      } else if (at + 2 < pattern_.size() && pattern_[at + 1] == '-') {
        char low = fold(pattern_[at]);
        char high = fold(pattern_[at + 2]);
        if (low > high) std::swap(low, high);
        found = found || (fold(c) >= low && fold(c) <= high);
        at += 2;
      } else {
        found = found || fold(pattern_[at]) == fold(c);
      }
    }
    *p = std::min(at + 1, pattern_.size());
    return found != negated;
  }

  std::string_view pattern_;
  std::string_view text_;
  bool ignore_case_;
};

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, bool ignore_case) {
  if (text.empty()) return pattern.empty();
  return Matcher(pattern, text, ignore_case).run();
}

LiteralPrefix literal_prefix(std::string_view pattern) {
  LiteralPrefix prefix;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '*' || c == '?' || c == '[') return prefix;
    if (c == '\\' && i + 1 < pattern.size()) c = pattern[++i];
    prefix.text.push_back(c);
  }
  prefix.is_whole = true;
  return prefix;
}

}  // namespace ingot::contract
