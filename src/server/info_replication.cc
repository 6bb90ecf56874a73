// Redis' names for how far a replica is, and the fields of the stream.
#include "src/server/info_replication.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/contract/client.h"
#include "src/contract/replicas.h"
#include "src/contract/running_server.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"

namespace ingot::server {

using contract::Replica;

std::string_view state_name(Replica::State state) {
  switch (state) {
    case Replica::State::kNone:
    case Replica::State::kWaits:
      return "wait_bgsave";
    case Replica::State::kReceives:
    case Replica::State::kLoads:
      return "send_bulk";
    case Replica::State::kOnline:
      return "online";
  }
  return "";
}

std::vector<Follower> followers(exec::Services& services) {
  std::vector<Follower> all;
  const int64_t now_ms = services.data.store.now_ms();
  for (const auto& client : services.replicas.all()) {
    const Replica& replica = *client->replica;
    const Replica::State state = replica.state;
    const bool online = state == Replica::State::kOnline;
    all.push_back({.ip = contract::ip_of(*client),
                   .port = replica.port,
                   .state = state_name(state),
                   .offset = replica.acked,
                   .lag_s = online ? std::max<int64_t>(now_ms - replica.acked_ms, 0) / 1000 : 0});
  }
  return all;
}

void write_master_link(const InfoSource& source, const contract::MasterLink& link,
                       InfoFields& out) {
  using State = contract::MasterLink::State;
  const bool transfers = link.state == State::kTransfer;
  out.add("master_host", link.host);
  out.add("master_port", link.port);
  out.add("master_link_status", link.state == State::kConnected ? "up" : "down");
  out.add("master_last_io_seconds_ago", link.last_io_s);
  out.add("master_sync_in_progress", transfers);
  out.add("slave_read_repl_offset", link.read_offset);
  out.add("slave_repl_offset", link.applied_offset);
  if (transfers) {
    const auto total = static_cast<int64_t>(link.transfer_bytes);
    const auto done = static_cast<int64_t>(link.transferred_bytes);
    out.add("master_sync_total_bytes", total);
    out.add("master_sync_read_bytes", done);
    out.add("master_sync_left_bytes", total - done);
    out.add_real("master_sync_perc",
                 total == 0 ? 0 : 100 * static_cast<double>(done) / static_cast<double>(total));
    out.add("master_sync_last_io_seconds_ago", link.transfer_idle_s);
  }
  if (link.state != State::kConnected) out.add("master_link_down_since_seconds", link.down_s);
  out.add("slave_priority", source.settings.replica_priority);
  out.add("slave_read_only", source.settings.replica_read_only);
  out.add("replica_announced", source.settings.replica_announced);
}

void write_followers(const InfoSource& source, InfoFields& out) {
  exec::Services& services = source.services;
  const auto all = followers(services);
  out.add("connected_slaves", all.size());
  if (source.settings.min_replicas_to_write > 0 && source.settings.min_replicas_max_lag > 0) {
    out.add("min_slaves_good_slaves", services.replicas.count_good(services.data.store.now_ms()));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Follower& each = all[i];
    out.add(fmt::format("slave{}", i),
            fmt::format("ip={},port={},state={},offset={},lag={}", each.ip, each.port, each.state,
                        each.offset, each.lag_s));
  }
  const data::ChangeStream& changes = services.data.changes;
  const data::ChangeStream::Place place = changes.place();
  out.add("master_failover_state", services.server.failover_state());
  out.add("master_replid", services.server.replication_id());
  const bool has_former = !place.former.empty();
  out.add("master_replid2", has_former ? place.former.front().id : std::string(40, '0'));
  out.add("master_repl_offset", place.offset);
  out.add("second_repl_offset",
          has_former ? static_cast<int64_t>(place.former.front().offset) + 1 : -1);
  const data::ChangeStream::BacklogFigures backlog = changes.backlog();
  const bool on = changes.on();
  out.add("repl_backlog_active", on);
  out.add("repl_backlog_size", source.settings.repl_backlog_size);
  out.add("repl_backlog_first_byte_offset", on ? backlog.begin + 1 : 0);
  out.add("repl_backlog_histlen", on ? backlog.bytes : 0);
}

}  // namespace ingot::server
