// Values by prefix, found by a text that begins with it: a look-up for each length that a prefix
// has, however many prefixes there are. One thread at a time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace ingot::contract {

// So that a look-up needs no string of its own.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <typename Value>
class PrefixMap {
 public:
  // Found, or made. Good until the next change.
  Value& at(std::string_view prefix) {
    return by_length_[prefix.size()].try_emplace(std::string(prefix)).first->second;
  }
  Value* find(std::string_view prefix) {
    const auto with_length = by_length_.find(prefix.size());
    if (with_length == by_length_.end()) return nullptr;
    const auto found = with_length->second.find(prefix);
    return found == with_length->second.end() ? nullptr : &found->second;
  }
  void erase(std::string_view prefix) {
    const auto with_length = by_length_.find(prefix.size());
    if (with_length == by_length_.end()) return;
    with_length->second.erase(prefix);
    if (with_length->second.empty()) by_length_.erase(with_length);
  }
  // `each(prefix, value)` for all that the text begins with, the shortest first.
  template <typename Each>
  void for_prefixes_of(std::string_view text, const Each& each) const {
    for (const auto& [length, with_length] : by_length_) {
      if (length > text.size()) return;
      const auto found = with_length.find(text.substr(0, length));
      if (found != with_length.end()) each(found->first, found->second);
    }
  }
  size_t size() const {
    size_t size = 0;
    for (const auto& [length, with_length] : by_length_) size += with_length.size();
    return size;
  }

 private:
  using WithLength = boost::unordered_flat_map<std::string, Value, TextHash, std::equal_to<>>;
  std::map<size_t, WithLength> by_length_;
};

}  // namespace ingot::contract
