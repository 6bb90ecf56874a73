// Opens listening sockets as Redis does, with its words when that fails.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <expected>
#include <string>
#include <vector>

#include "net/asio.h"
#include "net/server.h"

namespace ingot::net {

using ListenSocket = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;

struct ListenError {
  std::string text;
  bool address_in_use = false;
};

// One socket per address of options.bind at this port; none for port 0.
std::expected<std::vector<ListenSocket>, ListenError> open_tcp(const Executor& executor,
                                                               const ListenOptions& options,
                                                               uint16_t port);

// A socket file that is left from an earlier run is replaced; any other file is not.
std::expected<ListenSocket, ListenError> open_unix(const Executor& executor,
                                                   const ListenOptions& options);

// Empty, or why not.
std::string set_unix_permissions(const ListenOptions& options);

}  // namespace ingot::net
