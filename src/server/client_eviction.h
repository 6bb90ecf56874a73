// maxmemory-clients: ends the connections that take most memory until the others fit.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/contract/client_registry.h"
#include "src/metrics/stats.h"
#include "src/settings/settings.h"

namespace ingot::server {

// What all clients together may take; 0: whatever they do. `memory_limit`: maxmemory, or what is
// taken for it.
uint64_t clients_limit(const settings::Settings& settings, uint64_t memory_limit);

class ClientEviction {
 public:
  ClientEviction(const contract::ClientRegistry& clients, metrics::Stats& stats)
      : clients_(clients), stats_(stats) {}

  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }  // any thread
  void tick(int64_t now_ms);                                // one thread

 private:
  const contract::ClientRegistry& clients_;
  metrics::Stats& stats_;
  std::atomic<uint64_t> limit_bytes_{0};
};

}  // namespace ingot::server
