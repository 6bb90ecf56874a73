// Addresses and options of TCP sockets.
#include "net/addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace ingot::net {
namespace {

// "127.0.0.1:6379" or "[::1]:6379"
std::string format(const asio::generic::stream_protocol::endpoint& endpoint) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (endpoint.data()->sa_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, endpoint.data(), sizeof(address));
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
    return std::string("[") + text + "]:" + std::to_string(ntohs(address.sin6_port));
  }
  sockaddr_in address{};
  std::memcpy(&address, endpoint.data(), sizeof(address));
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
}

void set_option(int fd, int level, int name, int value) {
  // Failure leaves the system's default, which is no reason to refuse the client.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof(value)));
}

}  // namespace

Addresses tcp_addresses(const Socket& socket, ErrorCode& gone) {
  const auto peer = socket.remote_endpoint(gone);
  if (gone) return {};
  const auto local = socket.local_endpoint(gone);
  if (gone) return {};
  Addresses result{.peer = format(peer), .local = format(local)};
  result.peer_is_local = result.peer.starts_with("127.") || result.peer.starts_with("[::1]");
  return result;
}

void tune_tcp(Socket& socket, uint32_t keepalive_seconds) {
  const int fd = socket.native_handle();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (keepalive_seconds == 0) return;
  const int seconds = static_cast<int>(std::min<uint32_t>(keepalive_seconds, 32767));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace ingot::net
