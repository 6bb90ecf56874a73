// The list of what only Redis has, by name.
#include "src/access/redis_only.h"

#include "src/contract/row.h"

namespace ingot::access {
namespace {

using namespace contract::acl;

constexpr RedisOnly kCommands[] = {
    {"bgrewriteaof", kAdmin | kSlow | kDangerous},
    {"failover", kAdmin | kSlow | kDangerous},
    {"lolwut", kRead | kFast},
    {"memory|doctor", kSlow},
    {"memory|malloc-stats", kSlow},
    {"memory|stats", kSlow},
    {"module", kSlow},
    {"module|help", kSlow},
    {"module|list", kAdmin | kSlow | kDangerous},
    {"module|load", kAdmin | kSlow | kDangerous},
    {"module|loadex", kAdmin | kSlow | kDangerous},
    {"module|unload", kAdmin | kSlow | kDangerous},
    {"psync", kAdmin | kSlow | kDangerous},
    {"replconf", kAdmin | kSlow | kDangerous},
    {"restore-asking", kKeyspace | kWrite | kSlow | kDangerous},
    {"script|debug", kSlow | kScripting},
    {"sync", kAdmin | kSlow | kDangerous},
};

}  // namespace

std::span<const RedisOnly> redis_only_commands() {
  return kCommands;
}

}  // namespace ingot::access
