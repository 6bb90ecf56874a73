// Asynchronous operations of Boost.Asio, each run to its end or to its deadline.
#include "net/sync_client.h"

#include <sys/un.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "net/asio.h"

namespace ingot::net {
namespace {

using asio::ip::tcp;
using Endpoints = std::vector<asio::generic::stream_protocol::endpoint>;

constexpr size_t kLineBytesMax = 64 * 1024;
constexpr size_t kPieceBytes = 64 * 1024;            // sent under one deadline
constexpr int64_t kTimeoutMaxMs = int64_t{1} << 31;  // what clocks can add without an overflow

std::chrono::milliseconds duration(int64_t timeout_ms) {
  return std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMaxMs));
}

// A name is looked up on a thread that may outlive this call: the resolver knows no deadline.
Endpoints resolve(const std::string& host, uint16_t port, int64_t timeout_ms) {
  ErrorCode error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return {tcp::endpoint(address, port)};
  if (host.empty()) return {};  // to the resolver that would be this machine
  std::packaged_task<Endpoints()> look_up([host, port] {
    asio::io_context context;
    ErrorCode ignored;
    Endpoints found;
    for (const auto& entry : tcp::resolver(context).resolve(host, std::to_string(port), ignored)) {
      found.emplace_back(entry.endpoint());
    }
    return found;
  });
  auto found = look_up.get_future();
  try {
    std::thread(std::move(look_up)).detach();
  } catch (const std::system_error&) {  // no thread is to be had
    return {};
  }
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

  // Whatever comes next behind what has come already.
  bool fill(int64_t timeout_ms) {
    input_.erase(0, std::exchange(taken_, 0));
    const size_t had = input_.size();
    input_.resize(had + kPieceBytes);
    ErrorCode error;
    size_t came = 0;
    socket_.async_read_some(asio::buffer(input_.data() + had, kPieceBytes),
                            [&](const ErrorCode& outcome, size_t bytes) {
                              error = outcome;
                              came = bytes;
                            });
    const bool ended_well = finish(timeout_ms, error);
    input_.resize(had + came);
    return ended_well;
  }
  std::string_view input() const { return std::string_view(input_).substr(taken_); }

  asio::io_context context_{1};
  Socket socket_{context_.get_executor()};
  std::string input_;
  size_t taken_ = 0;  // of input_
};

SyncClient::SyncClient() : impl_(std::make_unique<Impl>()) {}
SyncClient::~SyncClient() = default;

SyncClient::Reached SyncClient::connect(const std::string& host, uint16_t port,
                                        int64_t timeout_ms) {
  const Endpoints endpoints = resolve(host, port, timeout_ms);
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

SyncClient::Reached SyncClient::connect_unix(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return Reached::kNot;  // no socket has it
  ErrorCode error;
  impl_->socket_.connect(asio::local::stream_protocol::endpoint(path), error);
  return error ? Reached::kNot : Reached::kYes;
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
  size_t length = 0;
  while ((length = impl_->input().find('\n')) == std::string_view::npos) {
    if (impl_->input().size() > kLineBytesMax || !impl_->fill(timeout_ms)) return false;
  }
  *line = impl_->input().substr(0, length);
  if (line->ends_with('\r')) line->pop_back();
  impl_->taken_ += length + 1;
  return true;
}

bool SyncClient::read_bytes(size_t count, std::string* bytes, int64_t timeout_ms) {
  bytes->clear();
  while (true) {
    const std::string_view more = impl_->input().substr(0, count - bytes->size());
    bytes->append(more);
    impl_->taken_ += more.size();
    if (bytes->size() == count) return true;
    if (!impl_->fill(timeout_ms)) return false;
  }
}

}  // namespace ingot::net
