// The turns of handshakes, and how many there may be.
#include "net/handshakes.h"

#include <algorithm>
#include <utility>

#include "net/connection_impl.h"
#include "net/server_state.h"

namespace ingot::net {
namespace {

constexpr uint64_t kHandshakeBytes = 40 << 10;
constexpr uint64_t kHandshakesMin = 16;

}  // namespace

Handshakes::Place Handshakes::begin(ConnectionImpl& connection) {
  const uint64_t bytes_max = state_.limits.handshake_bytes_max.load(std::memory_order_relaxed);
  const uint64_t of_all_max = bytes_max == 0 ? UINT64_MAX : bytes_max / kHandshakeBytes;
  const auto threads = static_cast<uint64_t>(state_.options.io_threads);
  const uint64_t count_max = std::max(kHandshakesMin, of_all_max / threads);
  // Closing one ends it here.
  while (unfinished_.size() >= count_max) {
    unfinished_.front()->close_for("A TLS handshake that newer ones had no room beside");
  }
  return unfinished_.insert(unfinished_.end(), &connection);
}

void Handshakes::wait_for_turn(std::shared_ptr<ConnectionImpl> connection) {
  waiting_.push_back(std::move(connection));
  if (waiting_.size() == 1) asio::post(executor_, [this] { take_turn(); });
}

// What has become ready meanwhile stands in front of the next turn.
void Handshakes::take_turn() {
  const auto connection = std::move(waiting_.front());
  waiting_.pop_front();
  if (!waiting_.empty()) asio::post(executor_, [this] { take_turn(); });
  connection->go_on();
}

}  // namespace ingot::net
