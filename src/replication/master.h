// This server as others follow it: begins to tell a client that asks, keeps the stream alive, gives
// up replicas that are silent.
//
// Threads: follow() on the I/O thread of the client; tick() by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "net/connection.h"
#include "src/contract/client.h"
#include "src/contract/running_server.h"
#include "src/exec/services.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::replication {

class Master {
 public:
  Master(exec::Services& services, exec::Writer& writer);

  // The answer to PSYNC and SYNC, which never ends while the client reads it.
  std::unique_ptr<net::BodySource> follow(contract::Client& client,
                                          contract::FollowRequest request);
  // Ten times a second, or so.
  void tick();

 private:
  exec::Services& services_;
  exec::Writer& writer_;
  std::chrono::steady_clock::time_point pinged_ = std::chrono::steady_clock::now();
  int64_t alone_since_ms_ = 0;  // nobody follows; 0: somebody does
};

}  // namespace ingot::replication
