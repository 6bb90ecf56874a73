// What the I/O threads of one server share.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/output_ledger.h"
#include "net/server.h"

namespace ingot::net {

struct ServerState {
  ServerOptions options;  // constant
  Limits limits;
  OutputLedger ledger;
  // Touched only when a client is slow to read or sends a command in parts.
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<uint64_t> query_bytes{0};
  std::atomic<uint64_t> output_limit_cuts{0};
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> connections{0};  // now
  std::atomic<uint64_t> adopted{0};      // accepted, and not yet taken by their I/O thread
};

}  // namespace ingot::net
