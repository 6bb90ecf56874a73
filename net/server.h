// The front end: listening sockets and the I/O threads that serve their connections.
//
// Threads: construct, listen and stop from one thread (the composition root, or CONFIG SET under
// its lock); limits() may be changed by any thread and is read on every use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "net/connection.h"
#include "net/tls_options.h"

namespace ingot::net {

// Bounds that CONFIG SET changes live.
struct Limits {
  std::atomic<uint64_t> proto_max_bulk_bytes{512ull << 20};
  std::atomic<uint64_t> query_buffer_bytes_max{1ull << 30};  // client-query-buffer-limit
  // client-output-buffer-limit of one class: 0 means no limit of that kind.
  struct Output {
    std::atomic<uint64_t> hard_bytes{0};
    std::atomic<uint64_t> soft_bytes{0};
    std::atomic<uint32_t> soft_seconds{0};
  };
  Output normal_output;
  Output subscriber_output;  // of subscribers
  // All clients' unsent replies together; past it the client that owes most is cut. 0: no bound.
  std::atomic<uint64_t> output_total_bytes_max{0};
  // All clients' input together: what is not parsed yet, and what handlers keep of it. Past it a
  // command that takes much is refused (Command::refused). 0: no bound
  std::atomic<uint64_t> query_total_bytes_max{0};
  // What one command's arguments may take of that, or a transaction's commands. 0: no bound
  std::atomic<uint64_t> command_bytes_max{0};
  // What all TLS handshakes that are not finished may take; past it the oldest are closed. 0: no
  // bound
  std::atomic<uint64_t> handshake_bytes_max{0};
  std::atomic<uint32_t> idle_timeout_seconds{0};  // 0: never
  std::atomic<uint32_t> tcp_keepalive_seconds{300};
};

struct ListenOptions {
  // Redis' meaning: "*" every IPv4 address, "::*" every IPv6 address; a leading "-" makes an
  // address optional.
  std::vector<std::string> bind = {"*", "-::*"};
  uint16_t port = 6379;   // 0: no TCP
  uint16_t tls_port = 0;  // 0: no TLS; else use_tls() comes first
  int backlog = 511;
  std::string unix_path;          // empty: none
  unsigned unix_permissions = 0;  // 0: leave as the umask makes it
};

// What a new connection is met with: a handler, or a refusal ("-ERR ...\r\n") that is written
// before the socket is closed.
using Welcome = std::variant<std::shared_ptr<Handler>, std::string>;

struct ServerOptions {
  int io_threads = 1;
  // Called on the connection's I/O thread. `peer_is_local`: loopback or unix socket.
  std::function<Welcome(Connection& connection, bool peer_is_local)> welcome;
  // One line of news for the log; any thread. May be empty.
  std::function<void(const std::string&)> on_log;
};

class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts listening, or moves to other addresses: the new sockets are bound first, and on failure
  // the old ones stay. Empty on success, else why, as Redis words it in its log
  // ("Could not create server TCP listening socket *:6379: bind: Address already in use").
  std::string listen(const ListenOptions& options);

  // What TLS offers from now on: to connections that come. Files are read here. Empty on success,
  // else why, for the log; then what was offered before stays.
  std::string use_tls(const TlsOptions& options);

  // Starts the I/O threads; connections are accepted from here on.
  void start();

  // Closes the listening sockets, and every connection after its queued replies were given
  // `grace_ms` to leave; joins the threads. Idempotent.
  void stop(int grace_ms = 0);

  Limits& limits();
  int io_threads() const;
  IoThread& thread(int index);
  uint64_t output_bytes_total() const;  // unsent replies of all connections; any thread
  uint64_t query_bytes_total() const;   // input held for all connections; any thread
  // Counters since start; any thread.
  uint64_t bytes_in() const;
  uint64_t bytes_out() const;
  uint64_t reads() const;  // from sockets
  uint64_t writes() const;
  uint64_t connections_accepted() const;
  uint64_t output_limit_disconnections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::net
