// Asynchronous operations of Boost.Asio, each run to its end or to its deadline.
#include "net/sync_client.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "net/asio.h"

namespace ingot::net {
namespace {

using asio::ip::tcp;

constexpr size_t kLineBytesMax = 64 * 1024;
constexpr size_t kPieceBytes = 64 * 1024;            // sent under one deadline
constexpr int64_t kTimeoutMaxMs = int64_t{1} << 31;  // what clocks can add without an overflow

std::chrono::milliseconds duration(int64_t timeout_ms) {
  return std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMaxMs));
}

// A name is looked up on a thread that may outlive this call: the resolver knows no deadline.
std::vector<tcp::endpoint> resolve(const std::string& host, uint16_t port, int64_t timeout_ms) {
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
  std::thread(std::move(look_up)).detach();
  if (found.wait_for(duration(timeout_ms)) != std::future_status::ready) return {};
  return found.get();
}

}  // namespace

class SyncClient::Impl {
 public:
  // Runs what was started; true when it ended well and in time.
  bool finish(int64_t timeout_ms, const ErrorCode& error) {
    context_.restart();
    context_.run_for(duration(timeout_ms));
    if (context_.stopped()) return !error;
    ErrorCode ignored;
    socket_.close(ignored);
    context_.run();  // the operation ends as cancelled
    return false;
  }

  asio::io_context context_{1};
  tcp::socket socket_{context_};
  std::string input_;
};

SyncClient::SyncClient() : impl_(std::make_unique<Impl>()) {}
SyncClient::~SyncClient() = default;

SyncClient::Reached SyncClient::connect(const std::string& host, uint16_t port,
                                        int64_t timeout_ms) {
  const std::vector<tcp::endpoint> endpoints = resolve(host, port, timeout_ms);
  if (endpoints.empty()) return Reached::kNot;
  ErrorCode error;
  asio::async_connect(impl_->socket_, endpoints,
                      [&error](const ErrorCode& outcome, const auto&) { error = outcome; });
  if (!impl_->finish(timeout_ms, error)) {
    const bool refused = error == asio::error::connection_refused ||
                         error == asio::error::connection_reset ||
                         error == asio::error::host_unreachable;
    return refused ? Reached::kRefused : Reached::kNot;
  }
  impl_->socket_.set_option(tcp::no_delay(true), error);
  return Reached::kYes;
}

bool SyncClient::send(std::string_view bytes, int64_t timeout_ms) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    ErrorCode error;
    asio::async_write(impl_->socket_, asio::buffer(piece.data(), piece.size()),
                      [&error](const ErrorCode& outcome, size_t) { error = outcome; });
    if (!impl_->finish(timeout_ms, error)) return false;
  }
  return true;
}

bool SyncClient::read_line(std::string* line, int64_t timeout_ms) {
  ErrorCode error;
  size_t length = 0;
  asio::async_read_until(impl_->socket_, asio::dynamic_buffer(impl_->input_, kLineBytesMax), "\r\n",
                         [&](const ErrorCode& outcome, size_t bytes) {
                           error = outcome;
                           length = bytes;
                         });
  if (!impl_->finish(timeout_ms, error)) return false;
  line->assign(impl_->input_, 0, length - 2);
  impl_->input_.erase(0, length);
  return true;
}

}  // namespace ingot::net
