// The list of what only Redis has, by name.
#include "src/access/redis_only.h"

#include "src/contract/row.h"

namespace ingot::access {
namespace {

using namespace contract::acl;

constexpr RedisOnly kCommands[] = {
    {"failover", kAdmin | kSlow | kDangerous},
    {"psync", kAdmin | kSlow | kDangerous},
    {"replconf", kAdmin | kSlow | kDangerous},
    {"sync", kAdmin | kSlow | kDangerous},
};

}  // namespace

std::span<const RedisOnly> redis_only_commands() {
  return kCommands;
}

}  // namespace ingot::access
