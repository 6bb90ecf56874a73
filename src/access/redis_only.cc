// The list of what only Redis has, by name: nothing is left on it.
#include "src/access/redis_only.h"

namespace ingot::access {

std::span<const RedisOnly> redis_only_commands() {
  return {};
}

}  // namespace ingot::access
