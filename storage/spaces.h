// The named spaces that keys live in: RocksDB column families, a one-byte key prefix on LevelDB.
// What is in each, byte for byte, is drawn in docs/format.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ingot::storage {

enum class Space : uint8_t {
  kSystem,   // format version, keyspace table, key counts, id reservations
  kMeta,     // keyspace id | user key -> metadata record, small values inline
  kData,     // collection id | element (or chunk number) -> flag byte, value
  kOrder,    // collection id | score or rank order of an element
  kExpiry,   // expiry time | keyspace id | user key -> nothing
  kGarbage,  // dead collection and keyspace ids whose bytes are still to be reclaimed
};

inline constexpr std::array<Space, 6> kAllSpaces = {
    Space::kSystem, Space::kMeta, Space::kData, Space::kOrder, Space::kExpiry, Space::kGarbage};
inline constexpr size_t kSpaceCount = kAllSpaces.size();

// The name on disk; part of the format, never changed.
constexpr std::string_view space_name(Space space) {
  constexpr std::array<std::string_view, kSpaceCount> names = {"system", "meta",   "data",
                                                               "order",  "expiry", "garbage"};
  return names[static_cast<size_t>(space)];
}

}  // namespace ingot::storage
