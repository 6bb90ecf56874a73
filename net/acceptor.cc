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

Acceptor::Listener::Listener(ListenSocket opened, std::string path)
    : socket(std::move(opened)), unix_path(std::move(path)), pause(socket.get_executor()) {}

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
    close_tcp();
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
  const bool same_tcp = options.bind == current_.bind && options.port == current_.port &&
                        options.backlog == current_.backlog;
  const Executor executor = context_.get_executor();
  auto tcp = same_tcp ? std::vector<ListenSocket>() : open_tcp(executor, options);
  bool old_closed = false;
  if (!tcp && tcp.error().address_in_use && options.port == current_.port) {
    // Most likely our own: "*" and "127.0.0.1" cannot both have one port.
    run([this] { close_tcp(); });
    old_closed = true;
    tcp = open_tcp(executor, options);
  }
  std::string error = tcp ? "" : tcp.error().text;

  const bool same_unix = options.unix_path == current_.unix_path;
  std::optional<ListenSocket> unix_socket;
  if (error.empty() && !options.unix_path.empty()) {
    if (same_unix) {
      error = set_unix_permissions(options);
    } else if (auto opened = open_unix(executor, options)) {
      unix_socket = std::move(*opened);
    } else {
      error = opened.error().text;
    }
  }
  if (!error.empty()) {
    if (old_closed) {
      if (tcp) tcp->clear();
      auto old = open_tcp(executor, current_);
      if (!old) return error + "; then " + old.error().text;
      run([&] { use_tcp(std::move(*old)); });
    }
    return error;
  }
  run([&] {
    if (!same_tcp) use_tcp(std::move(*tcp));
    if (!same_unix) close_unix();
    if (unix_socket) use_unix(std::move(*unix_socket), options.unix_path);
  });
  current_ = options;
  return {};
}

void Acceptor::use_tcp(std::vector<ListenSocket> sockets) {
  close_tcp();
  for (ListenSocket& socket : sockets) {
    tcp_.push_back(std::make_shared<Listener>(std::move(socket), ""));
    arm(tcp_.back());
  }
}

void Acceptor::use_unix(ListenSocket socket, const std::string& path) {
  unix_ = std::make_shared<Listener>(std::move(socket), path);
  arm(unix_);
}

void Acceptor::close_tcp() {
  for (const ListenerPtr& listener : tcp_) {
    listener->socket.close();
    listener->pause.cancel();
  }
  tcp_.clear();
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
    loop.adopt(std::move(client), listener->unix_path);
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
