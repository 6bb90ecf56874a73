// Names of a connection's two ends, and the options of its TCP socket.
#pragma once

#include <cstdint>
#include <string>

#include "net/asio.h"

namespace ingot::net {

struct Addresses {
  std::string peer;
  std::string local;
  bool peer_is_local = false;  // loopback, or a unix socket
};

// `gone` is set when the client has left already.
Addresses tcp_addresses(const Socket& socket, ErrorCode& gone);

// No delay; keepalive probes after `keepalive_seconds` of silence (0: none), as Redis sets them.
void tune_tcp(Socket& socket, uint32_t keepalive_seconds);

}  // namespace ingot::net
