// The accepting thread's work: opening and closing listeners, taking clients, and backing off when
// the process is out of descriptors.
#include "net/acceptor.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <utility>

namespace ingot::net {
namespace {

// Out of file descriptors or memory: time for some to come back.
constexpr auto kBackOff = std::chrono::milliseconds(100);
// Clients that I/O threads are too busy to take wait in the kernel: each of those here has a
// descriptor, which may be what the next log or table lacks.
constexpr uint64_t kAdoptedMax = 128;
constexpr auto kRest = std::chrono::milliseconds(2);

}  // namespace

Acceptor::Listener::Listener(ListenSocket opened, std::string path, bool is_tls)
    : socket(std::move(opened)),
      unix_path(std::move(path)),
      tls(is_tls),
      pause(socket.get_executor()) {}

Acceptor::Acceptor(std::vector<IoLoop*> loops, ServerState& state)
    : loops_(std::move(loops)), state_(state) {}

Acceptor::~Acceptor() = default;

void Acceptor::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "accept");
    context_.run();
  });
}

void Acceptor::stop() {
  run([this] {
    for (size_t port = 0; port < kPorts; ++port) close_tcp(port);
    close_unix();
  });
  current_ = {.bind = {}, .port = 0};
  if (!thread_.joinable()) return;
  context_.stop();
  thread_.join();
}

void Acceptor::run(const std::function<void()>& action) {
  if (!thread_.joinable()) return action();
  std::promise<void> done;
  asio::post(context_, [&] {
    action();
    done.set_value();
  });
  done.get_future().wait();
}

std::string Acceptor::listen(const ListenOptions& options) {
  OpenedPorts tcp;
  std::array<bool, kPorts> closed = {};
  std::string error = open_ports(options, &tcp, &closed);
  const bool same_unix = options.unix_path == current_.unix_path;
  std::optional<ListenSocket> unix_socket;
  if (error.empty() && !options.unix_path.empty()) {
    if (same_unix) {
      error = set_unix_permissions(options);
    } else if (auto opened = open_unix(context_.get_executor(), options)) {
      unix_socket = std::move(*opened);
    } else {
      error = opened.error().text;
    }
  }
  if (!error.empty()) {
    tcp = {};
    return error + reopen(closed);
  }
  run([&] {
    for (size_t port = 0; port < kPorts; ++port) {
      if (tcp[port]) use_tcp(port, std::move(*tcp[port]));
    }
    if (!same_unix) close_unix();
    if (unix_socket) use_unix(std::move(*unix_socket), options.unix_path);
  });
  current_ = options;
  return {};
}

void Acceptor::use_tls(std::shared_ptr<const TlsContext> context) {
  run([&] { tls_ = std::move(context); });
}

// Opens what `options` want otherwise than now. Our own sockets at a port that is wanted ("*" and
// "127.0.0.1" cannot both have it, and TLS may take over the plain port) are closed first. Empty,
// or what went wrong.
std::string Acceptor::open_ports(const ListenOptions& options, OpenedPorts* opened,
                                 std::array<bool, kPorts>* closed) {
  std::array<bool, kPorts> stays = {};
  for (size_t port = 0; port < kPorts; ++port) {
    stays[port] = options.bind == current_.bind && options.backlog == current_.backlog &&
                  port_of(options, port) == port_of(current_, port);
  }
  for (size_t port = 0; port < kPorts; ++port) {
    if (stays[port]) continue;
    const uint16_t number = port_of(options, port);
    auto sockets = open_tcp(context_.get_executor(), options, number);
    for (size_t own = 0; own < kPorts && !sockets && sockets.error().address_in_use; ++own) {
      if (stays[own] || port_of(current_, own) != number) continue;
      run([&] { close_tcp(own); });
      (*closed)[own] = true;
      sockets = open_tcp(context_.get_executor(), options, number);
    }
    if (!sockets) return sockets.error().text;
    (*opened)[port] = std::move(*sockets);
  }
  return {};
}

// What was closed for a change that failed. Empty, or what went wrong with that as well.
std::string Acceptor::reopen(const std::array<bool, kPorts>& closed) {
  for (size_t port = 0; port < kPorts; ++port) {
    if (!closed[port]) continue;
    auto old = open_tcp(context_.get_executor(), current_, port_of(current_, port));
    if (!old) return "; then " + old.error().text;
    run([&] { use_tcp(port, std::move(*old)); });
  }
  return {};
}

void Acceptor::use_tcp(size_t port, std::vector<ListenSocket> sockets) {
  close_tcp(port);
  for (ListenSocket& socket : sockets) {
    tcp_[port].push_back(std::make_shared<Listener>(std::move(socket), "", port == kTls));
    arm(tcp_[port].back());
  }
}

void Acceptor::use_unix(ListenSocket socket, const std::string& path) {
  unix_ = std::make_shared<Listener>(std::move(socket), path, false);
  arm(unix_);
}

void Acceptor::close_tcp(size_t port) {
  for (const ListenerPtr& listener : tcp_[port]) {
    listener->socket.close();
    listener->pause.cancel();
  }
  tcp_[port].clear();
}

void Acceptor::close_unix() {
  if (!unix_) return;
  unix_->socket.close();
  unix_->pause.cancel();
  unlink(unix_->unix_path.c_str());
  unix_.reset();
}

void Acceptor::arm(const ListenerPtr& listener) {
  listener->socket.async_wait(ListenSocket::wait_read, [this, listener](const ErrorCode& error) {
    if (!error) accept_all(listener);
  });
}

void Acceptor::accept_all(const ListenerPtr& listener) {
  while (listener->socket.is_open()) {
    if (state_.adopted.load(std::memory_order_relaxed) >= kAdoptedMax) return rest(listener, kRest);
    IoLoop& loop = *loops_[next_loop_];
    Socket client(loop.executor());
    ErrorCode error;
    listener->socket.accept(client, error);
    if (error == asio::error::connection_aborted) continue;
    if (is_would_block(error)) return arm(listener);
    if (error) return back_off(listener, error);
    backing_off_ = false;
    client.non_blocking(true, error);
    if (error) continue;
    next_loop_ = (next_loop_ + 1) % loops_.size();
    state_.accepted.fetch_add(1, std::memory_order_relaxed);
    loop.adopt(std::move(client),
               {.unix_path = listener->unix_path, .tls = listener->tls ? tls_ : nullptr});
  }
}

void Acceptor::back_off(const ListenerPtr& listener, const ErrorCode& error) {
  if (!std::exchange(backing_off_, true) && state_.options.on_log) {
    state_.options.on_log("Accepting client connection: accept: " + error.message());
  }
  rest(listener, kBackOff);
}

void Acceptor::rest(const ListenerPtr& listener, std::chrono::milliseconds time) {
  listener->pause.expires_after(time);
  listener->pause.async_wait([this, listener](const ErrorCode& cancelled) {
    if (!cancelled && listener->socket.is_open()) accept_all(listener);
  });
}

}  // namespace ingot::net
