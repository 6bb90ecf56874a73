// A socket that does not block, and waits for it of Boost.Asio, each with its deadline.
#include "net/link_socket.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "net/asio.h"
#include "net/tls.h"

namespace ingot::net {
namespace {

using asio::ip::tcp;

constexpr size_t kLineBytesMax = 64 * 1024;
constexpr size_t kPieceBytes = 16 * 1024;
constexpr int64_t kTimeoutMaxMs = int64_t{1} << 31;  // what clocks can add without an overflow

std::chrono::milliseconds duration(int64_t timeout_ms) {
  return std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMaxMs));
}

// A name is looked up on a thread that may outlive this call: the resolver knows no deadline, and
// cannot be interrupted.
std::vector<tcp::endpoint> resolve(const std::string& host, uint16_t port, int64_t timeout_ms,
                                   const std::atomic<bool>& interrupted) {
  ErrorCode error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return {tcp::endpoint(address, port)};
  if (host.empty()) return {};  // to the resolver that would be this machine
  std::packaged_task<std::vector<tcp::endpoint>()> look_up([host, port] {
    asio::io_context context;
    ErrorCode ignored;
    const auto found = tcp::resolver(context).resolve(host, std::to_string(port), ignored);
    return std::vector<tcp::endpoint>(found.begin(), found.end());
  });
  auto found = look_up.get_future();
  try {
    std::thread(std::move(look_up)).detach();
  } catch (const std::system_error&) {  // no thread is to be had
    return {};
  }
  constexpr std::chrono::milliseconds kLook(20);
  const auto until = std::chrono::steady_clock::now() + duration(timeout_ms);
  while (found.wait_for(kLook) != std::future_status::ready) {
    if (interrupted || std::chrono::steady_clock::now() >= until) return {};
  }
  return found.get();
}

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

}  // namespace

class LinkSocket::Impl {
 public:
  using Direction = tcp::socket::wait_type;

  // Runs what was started; false when its time is over.
  bool run(int64_t timeout_ms) {
    context_.restart();
    context_.run_for(duration(timeout_ms));
    return context_.stopped();
  }

  bool connect_from(const asio::ip::address& from, const std::vector<tcp::endpoint>& endpoints,
                    int64_t timeout_ms) {
    for (const tcp::endpoint& endpoint : endpoints) {
      ErrorCode error;
      socket_.close(error);
      socket_.open(endpoint.protocol(), error);
      if (!error) socket_.bind(tcp::endpoint(from, 0), error);
      if (error) continue;
      socket_.async_connect(endpoint, [&error](const ErrorCode& outcome) { error = outcome; });
      if (!run(timeout_ms)) {
        ErrorCode ignored;
        socket_.close(ignored);
        context_.run();  // the operation ends as cancelled
      }
      if (!error) return true;
      if (interrupted_) break;
    }
    ErrorCode ignored;
    socket_.close(ignored);
    return false;
  }

  Reached connect(const std::vector<tcp::endpoint>& endpoints, int64_t timeout_ms,
                  const std::string& from) {
    ErrorCode error;
    const auto address = asio::ip::make_address(from, error);
    if (!error && connect_from(address, endpoints, timeout_ms)) return prepare();
    if (interrupted_) return Reached::kNot;
    error = {};
    asio::async_connect(socket_, endpoints,
                        [&error](const ErrorCode& outcome, const auto&) { error = outcome; });
    if (!run(timeout_ms)) {
      ErrorCode ignored;
      socket_.close(ignored);
      context_.run();  // the operation ends as cancelled
      return Reached::kNot;
    }
    if (error) {
      const bool refused = error == asio::error::connection_refused ||
                           error == asio::error::connection_reset ||
                           error == asio::error::host_unreachable;
      return refused ? Reached::kRefused : Reached::kNot;
    }
    return prepare();
  }

  Reached prepare() {
    ErrorCode error;
    socket_.set_option(tcp::no_delay(true), error);
    socket_.non_blocking(true, error);
    return error || interrupted_ ? Reached::kNot : Reached::kYes;
  }

  // Whether the socket is ready, or broken: which shows when it is used.
  bool wait(Direction direction, int64_t timeout_ms) {
    ErrorCode error;
    socket_.async_wait(direction, [&error](const ErrorCode& outcome) { error = outcome; });
    if (!run(timeout_ms)) {
      ErrorCode ignored;
      socket_.cancel(ignored);
      context_.run();
      return false;
    }
    return !error && !interrupted_;
  }

  Got read_some(std::span<char> room, size_t* bytes, int64_t timeout_ms) {
    for (bool waited = false;; waited = true) {
      if (interrupted_) return Got::kEnd;
      ErrorCode error;
      *bytes = tls_ ? tls_->read_some(room.data(), room.size(), error)
                    : socket_.read_some(asio::buffer(room.data(), room.size()), error);
      if (!error) return Got::kBytes;
      if (error != asio::error::would_block) return Got::kEnd;
      if (waited) return Got::kNothing;  // of TLS, what was not for us
      const bool for_room = tls_ && tls_->read_waits_for_room();
      if (!wait(for_room ? Direction::wait_write : Direction::wait_read, timeout_ms)) {
        return interrupted_ ? Got::kEnd : Got::kNothing;
      }
    }
  }

  bool send(std::string_view bytes, int64_t timeout_ms) {
    while (!bytes.empty() && !interrupted_) {
      const std::string_view piece = bytes.substr(0, kPieceBytes);
      ErrorCode error;
      const size_t sent = tls_ ? tls_->write_some(piece.data(), piece.size(), error)
                               : socket_.write_some(asio::buffer(piece), error);
      bytes.remove_prefix(sent);
      if (!error) continue;
      if (error != asio::error::would_block) return false;
      const bool for_input = tls_ && tls_->write_waits_for_input();
      if (!wait(for_input ? Direction::wait_read : Direction::wait_write, timeout_ms)) return false;
    }
    return !interrupted_;
  }

  bool fail() {
    interrupted_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
    return false;
  }

  std::string tls_failure() const { return tls_ ? tls_->error_text() : ""; }

  // The handshake happens within reads. What the peer says before we do is kept.
  std::string start_tls(std::shared_ptr<const TlsContext> context, int64_t timeout_ms) {
    tls_ = std::make_unique<TlsStream>(std::move(context), socket_.native_handle());
    std::array<char, 512> room;
    while (!tls_->is_established()) {
      ErrorCode error;
      input_.append(room.data(), tls_->read_some(room.data(), room.size(), error));
      if (error && error != asio::error::would_block) {
        return tls_->error_text().empty() ? error.message() : tls_->error_text();
      }
      if (tls_->is_established()) break;
      const bool for_room = tls_->read_waits_for_room();
      if (!wait(for_room ? Direction::wait_write : Direction::wait_read, timeout_ms)) {
        return "no answer to the handshake";
      }
    }
    return {};
  }

  asio::io_context context_{1};
  tcp::socket socket_{context_};
  std::unique_ptr<TlsStream> tls_;
  std::string input_;  // read, and not yet asked for
  std::atomic<bool> interrupted_{false};
};

LinkSocket::LinkSocket() : impl_(std::make_unique<Impl>()) {}
LinkSocket::~LinkSocket() = default;

LinkSocket::Reached LinkSocket::connect(const std::string& host, uint16_t port, int64_t timeout_ms,
                                        const std::string& from) {
  const std::vector<tcp::endpoint> endpoints = resolve(host, port, timeout_ms, impl_->interrupted_);
  if (endpoints.empty() || impl_->interrupted_) return Reached::kNot;
  return impl_->connect(endpoints, timeout_ms, from);
}

std::string LinkSocket::start_tls(std::shared_ptr<const TlsContext> context, int64_t timeout_ms) {
  return impl_->start_tls(std::move(context), timeout_ms);
}

std::string LinkSocket::tls_failure() const {
  return impl_->tls_failure();
}

bool LinkSocket::send(std::string_view bytes, int64_t timeout_ms) {
  return impl_->send(bytes, timeout_ms);
}

bool LinkSocket::read_line(std::string* line, int64_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + duration(timeout_ms);
  std::array<char, 4096> room;
  size_t end = 0;
  while ((end = impl_->input_.find('\n', end)) == std::string::npos) {
    end = impl_->input_.size();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (end > kLineBytesMax || left.count() <= 0) return impl_->fail();
    size_t bytes = 0;
    if (impl_->read_some(room, &bytes, left.count()) == Got::kEnd) return impl_->fail();
    impl_->input_.append(room.data(), bytes);
  }
  line->assign(impl_->input_, 0, end);
  impl_->input_.erase(0, end + 1);
  if (line->ends_with('\r')) line->pop_back();
  return true;
}

LinkSocket::Got LinkSocket::read_some(std::span<char> room, size_t* bytes, int64_t timeout_ms) {
  std::string& input = impl_->input_;
  if (input.empty()) return impl_->read_some(room, bytes, timeout_ms);
  *bytes = input.copy(room.data(), room.size());
  input.erase(0, *bytes);
  return Got::kBytes;
}

void LinkSocket::interrupt() {
  impl_->interrupted_ = true;
  asio::post(impl_->context_, [impl = impl_.get()] {
    ErrorCode ignored;
    impl->socket_.close(ignored);
  });
}

void LinkSocket::nudge() {
  asio::post(impl_->context_, [impl = impl_.get()] {
    ErrorCode ignored;
    impl->socket_.cancel(ignored);
  });
}

std::string LinkSocket::peer_address() const {
  ErrorCode error;
  const tcp::endpoint endpoint = impl_->socket_.remote_endpoint(error);
  return error ? std::string() : to_text(endpoint);
}

std::string LinkSocket::local_address() const {
  ErrorCode error;
  const tcp::endpoint endpoint = impl_->socket_.local_endpoint(error);
  return error ? std::string() : to_text(endpoint);
}

int LinkSocket::fd() const {
  return impl_->socket_.native_handle();
}

}  // namespace ingot::net
