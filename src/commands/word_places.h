// Looking up words among a command's arguments, of which there may be millions: a table of their
// places, which takes some five bytes for each, where one of the words would take fifty.
//
// One thread. The arguments must outlive it.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "src/contract/args.h"

namespace ingot::commands {

// The last word of every `stride` ones.
struct Words {
  contract::Args all;
  size_t stride = 1;
  size_t size() const { return all.size() / stride; }
  std::string_view operator[](size_t i) const { return all[i * stride + stride - 1]; }
};

class WordPlaces {
 public:
  // Empty, with room for all of them.
  explicit WordPlaces(Words words) : words_(words) { first_.reserve(words.size()); }
  WordPlaces(const WordPlaces&) = delete;
  WordPlaces& operator=(const WordPlaces&) = delete;

  // Takes the word at that place in; where it stood first, and whether that is here.
  std::pair<uint32_t, bool> insert(uint32_t place) {
    const auto [first, is_first] = first_.insert(place);
    return {*first, is_first};
  }
  std::optional<uint32_t> find(std::string_view word) const {
    const auto found = first_.find(word);
    return found == first_.end() ? std::nullopt : std::optional(*found);
  }
  template <typename Each>
  void for_each(const Each& each) const {
    for (const uint32_t place : first_) each(place);
  }

 private:
  struct Hash {
    using is_transparent = void;
    const Words* words;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
    size_t operator()(uint32_t place) const { return (*this)((*words)[place]); }
  };
  struct Equal {
    using is_transparent = void;
    const Words* words;
    bool operator()(uint32_t a, uint32_t b) const { return (*words)[a] == (*words)[b]; }
    bool operator()(std::string_view a, uint32_t b) const { return a == (*words)[b]; }
    bool operator()(uint32_t a, std::string_view b) const { return (*words)[a] == b; }
  };

  const Words words_;
  boost::unordered_flat_set<uint32_t, Hash, Equal> first_{0, Hash{&words_}, Equal{&words_}};
};

}  // namespace ingot::commands
