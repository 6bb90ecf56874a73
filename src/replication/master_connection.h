// The connection of a replica to its master, up to where the master sends its data or its stream:
// connecting, the handshake, the question for what is missing. Errors are sentences for the log.
//
// One thread, but for interrupt() and nudge().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/link_socket.h"
#include "net/tls_options.h"
#include "src/settings/settings.h"

namespace ingot::replication {

// Where a stream is known to stand.
struct Position {
  std::string id;  // 40 hex digits; empty: nowhere
  uint64_t offset = 0;
};

class MasterConnection {
 public:
  // A copy of what it needs is taken.
  explicit MasterConnection(const settings::Settings& settings);

  // Each answers why it failed; empty: it did not.
  [[nodiscard]] std::string connect();
  [[nodiscard]] std::string shake_hands();

  struct Answer {
    // It goes on with the bytes behind ours, under this id; empty: the one that was asked for.
    bool goes_on = false;
    // Or it sends all of its data, which are at this place.
    Position full;
    std::string id;
    std::string error;
  };
  // PSYNC: `known` is what is here. `to_lead`: it is a replica, and is to lead from now on.
  [[nodiscard]] Answer ask_from(const Position& known, bool to_lead);

  // How the data will come: so many bytes, or up to these 40 bytes.
  struct Transfer {
    uint64_t bytes = 0;
    std::string end_mark;  // empty: by length
    std::string error;
  };
  [[nodiscard]] Transfer begin_transfer();

  [[nodiscard]] bool send(std::string_view bytes);
  [[nodiscard]] bool send_command(const std::vector<std::string_view>& words);

  int64_t timeout_ms() const { return timeout_ms_; }
  net::LinkSocket& socket() { return socket_; }
  void interrupt() { socket_.interrupt(); }
  void nudge() { socket_.nudge(); }

 private:
  std::string start_tls();
  // The next line of an answer; newlines alone only say that the master is there.
  [[nodiscard]] bool read_line(std::string* line);

  const settings::MasterAddress master_;
  const std::string user_, password_;
  const std::string bind_source_addr_;
  const std::string announced_ip_;
  const int announced_port_;
  const int64_t timeout_ms_;
  std::optional<net::TlsOptions> tls_;
  net::LinkSocket socket_;
};

}  // namespace ingot::replication
