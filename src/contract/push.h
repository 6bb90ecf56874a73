// What is sent to a client that did not ask just now: a message, an invalidation. Made once for all
// who get it.
#pragma once

#include "net/connection.h"

namespace ingot::contract {

struct Push {
  net::SharedBytes head;  // encoded, behind its first byte
  net::SharedBytes body;
  char mark = '\0';  // the first byte; 0: '>' in RESP3 and '*' in RESP2
};

// A client's connection, as those see it who send it pushes. Its I/O thread's.
class PushTarget {
 public:
  virtual ~PushTarget() = default;
  // Behind the replies to all that the client has sent so far, but not behind a command that waits
  // to be fed. Sent by the next flush_pushes().
  virtual void push(const Push& push) = 0;
  virtual void flush_pushes() = 0;
};

}  // namespace ingot::contract
