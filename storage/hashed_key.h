// A key of a space together with its hash, so that the maps which it passes through on its way hash
// it once.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "storage/spaces.h"

namespace ingot::storage {

struct SpaceKey {
  Space space;
  std::string_view key;  // somebody else's bytes

  auto operator<=>(const SpaceKey&) const = default;
};

struct HashedKey : SpaceKey {
  // The hash of one key differs from process to process.
  HashedKey(Space in_space, std::string_view bytes);
  // `same` elsewhere in memory.
  HashedKey(const HashedKey& same, std::string_view bytes)
      : SpaceKey{same.space, bytes}, hash(same.hash) {}

  bool operator==(const HashedKey& other) const {
    return hash == other.hash && SpaceKey::operator==(other);
  }

  uint64_t hash;
};

struct HashOfKey {
  using is_avalanching = void;
  size_t operator()(const HashedKey& key) const noexcept { return key.hash; }
};

}  // namespace ingot::storage
