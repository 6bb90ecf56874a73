// The list of what only Redis has, by name.
#include "src/access/redis_only.h"

#include "src/contract/row.h"

namespace ingot::access {
namespace {

using namespace contract::acl;

constexpr RedisOnly kCommands[] = {
    {"bgrewriteaof", kAdmin | kSlow | kDangerous},
    {"client|caching", kSlow | kConnection},
    {"client|getredir", kSlow | kConnection},
    {"client|pause", kAdmin | kSlow | kDangerous | kConnection},
    {"client|tracking", kSlow | kConnection},
    {"client|trackinginfo", kSlow | kConnection},
    {"client|unblock", kAdmin | kSlow | kDangerous | kConnection},
    {"client|unpause", kAdmin | kSlow | kDangerous | kConnection},
    {"eval", kSlow | kScripting},
    {"eval_ro", kSlow | kScripting},
    {"evalsha", kSlow | kScripting},
    {"evalsha_ro", kSlow | kScripting},
    {"failover", kAdmin | kSlow | kDangerous},
    {"fcall", kSlow | kScripting},
    {"fcall_ro", kSlow | kScripting},
    {"function", kSlow},
    {"function|delete", kWrite | kSlow | kScripting},
    {"function|dump", kSlow | kScripting},
    {"function|flush", kWrite | kSlow | kScripting},
    {"function|help", kSlow | kScripting},
    {"function|kill", kSlow | kScripting},
    {"function|list", kSlow | kScripting},
    {"function|load", kWrite | kSlow | kScripting},
    {"function|restore", kWrite | kSlow | kScripting},
    {"function|stats", kSlow | kScripting},
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
    {"monitor", kAdmin | kSlow | kDangerous},
    {"psubscribe", kPubsub | kSlow},
    {"psync", kAdmin | kSlow | kDangerous},
    {"publish", kPubsub | kFast},
    {"pubsub", kSlow},
    {"pubsub|channels", kPubsub | kSlow},
    {"pubsub|help", kSlow},
    {"pubsub|numpat", kPubsub | kSlow},
    {"pubsub|numsub", kPubsub | kSlow},
    {"pubsub|shardchannels", kPubsub | kSlow},
    {"pubsub|shardnumsub", kPubsub | kSlow},
    {"punsubscribe", kPubsub | kSlow},
    {"replconf", kAdmin | kSlow | kDangerous},
    {"restore-asking", kKeyspace | kWrite | kSlow | kDangerous},
    {"script", kSlow},
    {"script|debug", kSlow | kScripting},
    {"script|exists", kSlow | kScripting},
    {"script|flush", kSlow | kScripting},
    {"script|help", kSlow | kScripting},
    {"script|kill", kSlow | kScripting},
    {"script|load", kSlow | kScripting},
    {"spublish", kPubsub | kFast},
    {"ssubscribe", kPubsub | kSlow},
    {"subscribe", kPubsub | kSlow},
    {"sunsubscribe", kPubsub | kSlow},
    {"sync", kAdmin | kSlow | kDangerous},
    {"unsubscribe", kPubsub | kSlow},
};

}  // namespace

std::span<const RedisOnly> redis_only_commands() {
  return kCommands;
}

}  // namespace ingot::access
