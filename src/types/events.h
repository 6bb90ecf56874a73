// Keyspace events: what happened to a key, for whoever is told (notify-keyspace-events). Plain
// data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::types {

// Bits of notify-keyspace-events.
namespace notify {
enum : uint32_t {
  kKeyspace = 1u << 0,  // K
  kKeyevent = 1u << 1,  // E
  kGeneric = 1u << 2,   // g
  kString = 1u << 3,    // $
  kList = 1u << 4,      // l
  kSet = 1u << 5,       // s
  kHash = 1u << 6,      // h
  kZset = 1u << 7,      // z
  kExpired = 1u << 8,   // x
  kEvicted = 1u << 9,   // e
  kStream = 1u << 10,   // t
  kModule = 1u << 11,   // d
  kKeyMiss = 1u << 12,  // m
  kNew = 1u << 13,      // n
  kForms = kKeyspace | kKeyevent,
  // A: every class but m and n
  kAll =
      kGeneric | kString | kList | kSet | kHash | kZset | kExpired | kEvicted | kStream | kModule,
};
}  // namespace notify

struct Event {
  uint32_t kinds;         // bits of namespace notify: its class, and in which forms it is told
  std::string_view name;  // "set", "expired", ...; static
  int db;
  std::string key;
};

}  // namespace ingot::types
