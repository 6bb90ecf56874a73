// Names and categories of the commands that Redis 7.0 has and Ingot has not. Who gets one leaves
// this list.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ingot::access {

struct RedisOnly {
  std::string_view name;    // of a subcommand "container|name"
  uint32_t categories = 0;  // bits of contract::acl
};
std::span<const RedisOnly> redis_only_commands();

}  // namespace ingot::access
