// The TLS handshakes of one I/O thread. Each step costs a millisecond of the processor, so they
// take turns with all that the thread has to do besides; and those that are not finished own some
// 40 KB each, so there are no more of them than memory for them: who began first is closed for
// others.
//
// Threads: the loop's own.
#pragma once

#include <deque>
#include <list>
#include <memory>

#include "net/asio.h"

namespace ingot::net {

class ConnectionImpl;
struct ServerState;

class Handshakes {
 public:
  using Place = std::list<ConnectionImpl*>::iterator;

  Handshakes(Executor executor, const ServerState& state) : executor_(executor), state_(state) {}

  // Notes one that begins, and closes the oldest ones that are too many.
  Place begin(ConnectionImpl& connection);
  void end(Place place) { unfinished_.erase(place); }

  // Has go_on() called when it is this connection's turn.
  void wait_for_turn(std::shared_ptr<ConnectionImpl> connection);

 private:
  void take_turn();

  const Executor executor_;
  const ServerState& state_;
  std::list<ConnectionImpl*> unfinished_;  // in the order in which they began
  std::deque<std::shared_ptr<ConnectionImpl>> waiting_;
};

}  // namespace ingot::net
