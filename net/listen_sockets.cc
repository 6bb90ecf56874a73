// Opening of TCP and unix sockets, with the words of Redis for what goes wrong.
#include "net/listen_sockets.h"

#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ingot::net {
namespace {

using Endpoint = asio::generic::stream_protocol::endpoint;

// What went wrong where, as in "bind: Address already in use".
struct StepError {
  std::string step;
  ErrorCode code;

  std::string text() const { return step.empty() ? code.message() : step + ": " + code.message(); }
};

std::expected<ListenSocket, StepError> open_at(const Executor& executor, const Endpoint& endpoint,
                                               int backlog) {
  ListenSocket socket(executor);
  ErrorCode error;
  socket.open(endpoint.protocol(), error);
  if (error) return std::unexpected(StepError{"socket", error});
  if (endpoint.protocol().family() == AF_INET6) {
    socket.set_option(asio::ip::v6_only(true), error);
    if (error) return std::unexpected(StepError{"setsockopt", error});
  }
  socket.set_option(asio::socket_base::reuse_address(true), error);
  if (error) return std::unexpected(StepError{"setsockopt SO_REUSEADDR", error});
  socket.bind(endpoint, error);
  if (error) return std::unexpected(StepError{"bind", error});
  socket.listen(backlog, error);
  if (error) return std::unexpected(StepError{"listen", error});
  socket.non_blocking(true, error);
  if (error) return std::unexpected(StepError{"fcntl", error});
  return socket;
}

// The first of the host's addresses that can be bound.
std::expected<ListenSocket, StepError> open_host(const Executor& executor, const std::string& host,
                                                 uint16_t port, int backlog) {
  using asio::ip::tcp;
  const bool v6 = host.contains(':');
  const std::string name = host == "*" ? "0.0.0.0" : host == "::*" ? "::" : host;
  tcp::resolver resolver(executor.context());
  ErrorCode error;
  const auto found = resolver.resolve(v6 ? tcp::v6() : tcp::v4(), name, std::to_string(port),
                                      tcp::resolver::passive, error);
  if (error) return std::unexpected(StepError{"", error});
  StepError last;
  for (const auto& entry : found) {
    auto socket = open_at(executor, Endpoint(entry.endpoint()), backlog);
    if (socket) return socket;
    last = socket.error();
  }
  return std::unexpected(last);
}

// The machine has no such protocol (IPv6 switched off): Redis passes over the address.
bool is_unsupported(const ErrorCode& error) {
  switch (error.value()) {
    case ENOPROTOOPT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EPFNOSUPPORT:
    case EAFNOSUPPORT:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::expected<std::vector<ListenSocket>, ListenError> open_tcp(const Executor& executor,
                                                               const ListenOptions& options,
                                                               uint16_t port) {
  std::vector<ListenSocket> sockets;
  if (port == 0) return sockets;
  ListenError passed_over;
  for (const std::string& address : options.bind) {
    const bool optional = address.starts_with('-');
    const std::string host = address.substr(optional ? 1 : 0);
    auto socket = open_host(executor, host, port, options.backlog);
    if (socket) {
      sockets.push_back(std::move(*socket));
      continue;
    }
    const StepError& error = socket.error();
    ListenError failure{.text = "Could not create server TCP listening socket " + host + ":" +
                                std::to_string(port) + ": " + error.text(),
                        .address_in_use = error.code == asio::error::address_in_use};
    if (!is_unsupported(error.code) && !(optional && error.code.value() == EADDRNOTAVAIL)) {
      return std::unexpected(std::move(failure));
    }
    passed_over = std::move(failure);
  }
  if (sockets.empty() && !passed_over.text.empty()) return std::unexpected(std::move(passed_over));
  return sockets;
}

std::expected<ListenSocket, ListenError> open_unix(const Executor& executor,
                                                   const ListenOptions& options) {
  const auto failed = [](const std::string& why) {
    return std::unexpected(ListenError{.text = "Opening Unix socket: " + why});
  };
  if (options.unix_path.size() >= sizeof(sockaddr_un::sun_path)) return failed("path too long");
  struct stat state {};
  const char* const path = options.unix_path.c_str();
  if (lstat(path, &state) == 0 && S_ISSOCK(state.st_mode)) unlink(path);
  auto socket =
      open_at(executor, Endpoint(asio::local::stream_protocol::endpoint(path)), options.backlog);
  if (!socket) return failed(socket.error().text());
  if (const std::string why = set_unix_permissions(options); !why.empty()) {
    unlink(path);
    return failed(why);
  }
  return std::move(*socket);
}

std::string set_unix_permissions(const ListenOptions& options) {
  if (options.unix_permissions == 0) return {};
  if (chmod(options.unix_path.c_str(), static_cast<mode_t>(options.unix_permissions)) == 0) {
    return {};
  }
  return std::string("chmod: ") + std::strerror(errno);
}

}  // namespace ingot::net
