// The line that describes a client in CLIENT LIST and ACL LOG.
#pragma once

#include <cstdint>
#include <string>

#include "src/contract/client.h"

namespace ingot::access {

// Without its end. Called under the registry's lock.
std::string client_line(const contract::Client& client, int64_t now_ms);

}  // namespace ingot::access
