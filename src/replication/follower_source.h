// What a client that follows is sent: the answer to its PSYNC, an RDB if it needs one, then the
// stream of changes for as long as it reads. Nothing waits in memory for one that is slow: the RDB
// is read from a view as it is sent, and the stream from the backlog on disk.
//
// Threads: next() and expired() on the connection's I/O thread; the destructor on any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/connection.h"
#include "src/contract/client.h"
#include "src/contract/running_server.h"
#include "src/exec/services.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::replication {

// Unix; when a replica has sent anything. One that loads shows by empty lines that it is there,
// which are no commands and reach nobody here: so the kernel is asked.
int64_t heard_ms(const contract::Client& client, int64_t now_ms);

class FollowerSource final : public net::BodySource {
 public:
  FollowerSource(exec::Services& services, exec::Writer& writer,
                 std::shared_ptr<contract::Client> client, contract::FollowRequest request);
  ~FollowerSource() override;

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override;
  // One that stays behind further than client-output-buffer-limit allows for replicas, or neither
  // takes nor sends anything for repl-timeout, is cut.
  bool expired() override;
  bool is_endless() const override { return true; }

 private:
  struct State;
  bool is_too_far_behind();
  const std::shared_ptr<State> state_;  // shared with what is under way for the next piece
};

}  // namespace ingot::replication
