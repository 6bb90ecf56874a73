// Values by glob pattern, found by a text that the pattern matches. Thousands of patterns that
// begin with different words cost a few look-ups, not a match for each pattern. One thread at a
// time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/contract/glob.h"
#include "src/contract/prefix_map.h"

namespace ingot::contract {

template <typename Value>
class PatternMap {
 public:
  // Found, or made.
  Value& at(std::string_view pattern) {
    const auto [found, added] =
        by_prefix_.at(literal_prefix(pattern).text).try_emplace(std::string(pattern));
    if (added) ++size_;
    return found->second;
  }
  Value* find(std::string_view pattern) {
    Siblings* const siblings = by_prefix_.find(literal_prefix(pattern).text);
    if (siblings == nullptr) return nullptr;
    const auto found = siblings->find(pattern);
    return found == siblings->end() ? nullptr : &found->second;
  }
  void erase(std::string_view pattern) {
    const std::string prefix = literal_prefix(pattern).text;
    Siblings* const siblings = by_prefix_.find(prefix);
    if (siblings == nullptr) return;
    const auto found = siblings->find(pattern);
    if (found == siblings->end()) return;
    siblings->erase(found);
    --size_;
    if (siblings->empty()) by_prefix_.erase(prefix);
  }
  // `each(pattern, value)` for all patterns that match the text.
  template <typename Each>
  void for_matches(std::string_view text, const Each& each) const {
    by_prefix_.for_prefixes_of(text, [&](const std::string&, const Siblings& siblings) {
      for (const auto& [pattern, value] : siblings) {
        if (glob_matches(pattern, text)) each(pattern, value);
      }
    });
  }
  size_t size() const { return size_; }

 private:
  using Siblings = std::map<std::string, Value, std::less<>>;  // that begin alike
  PrefixMap<Siblings> by_prefix_;
  size_t size_ = 0;
};

}  // namespace ingot::contract
