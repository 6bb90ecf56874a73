// A script as EVAL and SCRIPT LOAD take it: its body, its name, and what its first line declares.
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::script {

// What a script or a function says of itself.
namespace flag {
enum : uint32_t {
  kNoWrites = 1u << 0,
  kAllowOom = 1u << 1,
  kAllowStale = 1u << 2,
  kNoCluster = 1u << 3,
  kAllowCrossSlotKeys = 1u << 4,
};
}  // namespace flag

// The flag of that name, or 0.
uint32_t flag_of(std::string_view name);
std::string_view flag_name(uint32_t flag);  // of one of them

struct Script {
  std::string sha;   // 40 hex digits, lower case: its name
  std::string body;  // as the client gave it
  uint32_t flags = 0;
  bool declares = false;  // its first line is "#!lua ...": it declares flags, if only none
  bool is_kept = false;   // by SCRIPT LOAD
};

// What the first line declares, of a script that begins with "#!"; as read_script().
std::optional<uint32_t> declared_flags(std::string_view body, std::string* error);

// `*error` is Redis' sentence when the first line cannot be understood.
std::shared_ptr<const Script> read_script(std::string_view body, std::string* error);

std::string sha1_hex(std::string_view bytes);

}  // namespace ingot::script
