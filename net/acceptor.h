// Accepts clients on every listening socket and deals them out to the I/O threads in turn. Has a
// thread of its own, so that opening and moving of sockets never waits for an I/O thread.
//
// Threads: listen, start and stop from the server's owner.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/asio.h"
#include "net/io_loop.h"
#include "net/listen_sockets.h"
#include "net/server_state.h"

namespace ingot::net {

class Acceptor {
 public:
  Acceptor(std::vector<IoLoop*> loops, ServerState& state);
  ~Acceptor();  // stop() must have been called

  // As Server::listen.
  std::string listen(const ListenOptions& options);
  // For clients of the TLS port from now on.
  void use_tls(std::shared_ptr<const TlsContext> context);
  void start();
  void stop();

 private:
  // A listening socket in use. Kept alive by its pending wait, too.
  struct Listener {
    Listener(ListenSocket opened, std::string path, bool is_tls);
    ListenSocket socket;
    const std::string unix_path;  // empty: TCP
    const bool tls;
    asio::steady_timer pause;
  };
  using ListenerPtr = std::shared_ptr<Listener>;
  // The TCP ports: plain and TLS.
  static constexpr size_t kPlain = 0;
  static constexpr size_t kTls = 1;
  static constexpr size_t kPorts = 2;
  static uint16_t port_of(const ListenOptions& options, size_t which) {
    return which == kTls ? options.tls_port : options.port;
  }
  using OpenedPorts = std::array<std::optional<std::vector<ListenSocket>>, kPorts>;

  // Runs `action` on the acceptor's thread, or right here when that does not run.
  void run(const std::function<void()>& action);
  std::string open_ports(const ListenOptions& options, OpenedPorts* opened,
                         std::array<bool, kPorts>* closed);
  std::string reopen(const std::array<bool, kPorts>& closed);
  void use_tcp(size_t port, std::vector<ListenSocket> sockets);
  void use_unix(ListenSocket socket, const std::string& path);
  void close_tcp(size_t port);
  void close_unix();
  void arm(const ListenerPtr& listener);
  void accept_all(const ListenerPtr& listener);
  void back_off(const ListenerPtr& listener, const ErrorCode& error);
  void rest(const ListenerPtr& listener, std::chrono::milliseconds time);

  const std::vector<IoLoop*> loops_;
  ServerState& state_;
  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  std::thread thread_;

  // The owner's.
  ListenOptions current_{.bind = {}, .port = 0};
  // The acceptor thread's.
  std::array<std::vector<ListenerPtr>, kPorts> tcp_;
  std::shared_ptr<const TlsContext> tls_;
  ListenerPtr unix_;  // or null
  size_t next_loop_ = 0;
  bool backing_off_ = false;  // told in the log
};

}  // namespace ingot::net
