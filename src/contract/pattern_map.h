// Values by glob pattern, found by a text that the pattern matches. Thousands of patterns that
// begin with different words cost a look-up for each length of such a beginning, not a match for
// each pattern. One thread at a time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/contract/glob.h"

namespace ingot::contract {

// So that a look-up needs no string of its own.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <typename Value>
class PatternMap {
 public:
  // Found, or made.
  Value& at(std::string_view pattern) {
    const std::string prefix = literal_prefix(pattern).text;
    const auto [found, added] = by_length_[prefix.size()][prefix].try_emplace(std::string(pattern));
    if (added) ++size_;
    return found->second;
  }
  Value* find(std::string_view pattern) {
    Value* value = nullptr;
    with_siblings(pattern, [&](auto&, auto& siblings) {
      const auto found = siblings.find(pattern);
      if (found != siblings.end()) value = &found->second;
    });
    return value;
  }
  void erase(std::string_view pattern) {
    with_siblings(pattern, [&](auto& with_length, auto& siblings) {
      const auto found = siblings.find(pattern);
      if (found == siblings.end()) return;
      siblings.erase(found);
      --size_;
      if (!siblings.empty()) return;
      const std::string prefix = literal_prefix(pattern).text;
      with_length.erase(prefix);
      if (with_length.empty()) by_length_.erase(prefix.size());
    });
  }
  // `each(pattern, value)` for all patterns that match the text.
  template <typename Each>
  void for_matches(std::string_view text, const Each& each) const {
    for (const auto& [length, with_length] : by_length_) {
      if (length > text.size()) return;
      const auto found = with_length.find(text.substr(0, length));
      if (found == with_length.end()) continue;
      for (const auto& [pattern, value] : found->second) {
        if (glob_matches(pattern, text)) each(pattern, value);
      }
    }
  }
  size_t size() const { return size_; }

 private:
  using Siblings = std::map<std::string, Value, std::less<>>;  // that begin alike
  using WithLength = boost::unordered_flat_map<std::string, Siblings, TextHash, std::equal_to<>>;

  template <typename Do>
  void with_siblings(std::string_view pattern, const Do& action) {
    const std::string prefix = literal_prefix(pattern).text;
    const auto with_length = by_length_.find(prefix.size());
    if (with_length == by_length_.end()) return;
    const auto siblings = with_length->second.find(prefix);
    if (siblings != with_length->second.end()) action(with_length->second, siblings->second);
  }

  std::map<size_t, WithLength> by_length_;  // of what they begin with
  size_t size_ = 0;
};

}  // namespace ingot::contract
