// One attempt to follow the master: it connects, shakes hands, asks for what is missing, brings all
// of the data beside the old ones if there is no other way, and then follows the stream until
// something fails. The data stay as they are wherever it ends; another attempt goes on from there.
//
// Threads: run() by one; the rest by any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "src/contract/client.h"
#include "src/contract/master_link.h"
#include "src/data/change_stream.h"
#include "src/exec/services.h"
#include "src/replication/master_connection.h"
#include "src/replication/stream_applier.h"

namespace ingot::data {
class RdbLoader;
}

namespace ingot::replication {

inline int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// The stream goes on under another id, which those who follow this server learn when they come
// back. (Who has not been answered yet is told it at once.)
void disconnect_followers(exec::Services& services);

class Link : public std::enable_shared_from_this<Link> {
 public:
  // `begin` gives it the number under which the writer takes its units, or nothing: another master
  // is followed by now, or none. `on_taken_over`: the master is asked to lead, and this is told
  // whether it does.
  Link(exec::Services& services, exec::Writer& writer, const settings::Settings& settings,
       std::function<std::optional<uint64_t>()> begin,
       std::function<void(bool accepted)> on_taken_over);

  // Until the link is of no more use; the log says why. Whether it was in the stream for a while,
  // so that a new attempt need not wait.
  bool run();
  void interrupt();
  contract::MasterLink figures() const;

 private:
  bool fail(std::string_view why) const;  // logs it, unless it was interrupted; false
  void enter(contract::MasterLink::State state);
  std::optional<data::ChangeStream::Place> place_to_go_on();
  bool go_on_as(const std::string& id);
  bool take_all(const Position& place);
  bool receive(const MasterConnection::Transfer& transfer, data::RdbLoader& loader);
  bool publish(std::shared_ptr<const data::RdbLoader> loader, const Position& place);
  std::shared_ptr<contract::Client> make_client();
  bool follow_stream();
  struct Incoming;
  bool read_stream(StreamApplier& applier);
  bool read_more(StreamApplier& applier, Incoming& stream);
  bool take_commands(StreamApplier& applier, Incoming& stream);
  bool take_large_value(StreamApplier& applier, Incoming& stream,
                        std::shared_ptr<net::ArgumentSink> sink);
  bool send_ack(const StreamApplier& applier);
  void send_ack_if_due(StreamApplier& applier);

  exec::Services& services_;
  exec::Writer& writer_;
  const std::function<std::optional<uint64_t>()> begin_;
  const std::function<void(bool accepted)> on_taken_over_;
  const uint64_t bulk_bytes_max_;
  MasterConnection connection_;

  // run()'s thread:
  uint64_t number_ = 0;
  std::string early_;         // of the stream, that came together with the data
  int64_t last_sent_ms_ = 0;  // steady
  bool is_heard_ = true;      // what was sent last, by the master

  mutable std::mutex mutex_;
  contract::MasterLink figures_;            // by mutex_; without those of time and of the stream
  std::shared_ptr<StreamApplier> applier_;  // by mutex_; null: not in the stream
  std::atomic<int64_t> last_io_ms_{0};      // steady
  std::atomic<bool> interrupted_{false};
};

}  // namespace ingot::replication
