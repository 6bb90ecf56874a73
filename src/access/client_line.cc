// The fields of a client's line.
#include "src/access/client_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "src/access/users.h"
#include "src/contract/replicas.h"
#include "src/contract/table.h"

namespace ingot::access {
namespace {

using contract::ChannelKind;

std::string command_name(const contract::Client& client) {
  // What it has sent behind that has been looked at already.
  if (const contract::CommandRow* waits_in = client.waits_in) {
    return contract::full_name(nullptr, *waits_in);
  }
  const contract::CommandRow* row = client.last_command;
  const contract::CommandRow* subcommand = client.last_subcommand;
  if (row == nullptr) return "NULL";
  return subcommand != nullptr ? contract::full_name(row, *subcommand)
                               : contract::full_name(nullptr, *row);
}

std::string flags_of(const contract::Client& client) {
  std::string flags;
  const uint32_t tracking = client.tracking;
  if (client.follows) flags += 'S';
  if (client.is_master) flags += 'M';
  if (client.is_monitor()) flags += 'O';
  if (client.is_subscriber()) flags += 'P';
  if (client.queued >= 0) flags += 'x';
  if (client.waits_in != nullptr || client.paused) flags += 'b';
  if (tracking != 0) flags += 't';
  if ((tracking & contract::tracks::kBrokenRedirect) != 0) flags += 'R';
  if ((tracking & contract::tracks::kBroadcast) != 0) flags += 'B';
  if (client.watch_broken) flags += 'd';
  if (client.is_unix) flags += 'U';
  if (client.no_evict) flags += 'e';
  if (client.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

int64_t steady_now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

// A connection has no reply buffer of its own (rbs, rbp, obl): its thread lends it one. What a
// replica has yet to be sent (omem) is no memory, but what limits are on.
std::string client_line(const contract::Client& client, int64_t now_ms) {
  const net::Connection* connection = client.connection;
  uint64_t input = 0;
  uint64_t input_free = 0;
  uint64_t output = 0;
  uint32_t output_pieces = 0;
  int64_t idle_ms = 0;
  if (connection != nullptr) {
    input = connection->query_buffer_bytes;
    input_free = connection->query_buffer_free;
    output = connection->output_bytes;
    output_pieces = connection->output_pieces;
    idle_ms = std::max<int64_t>(0, steady_now_ms() - connection->last_interaction_ms);
  }
  const uint64_t unsent = client.follows ? client.replica->unsent.load() : 0;
  const uint64_t arguments = client.pending_bytes;
  const uint64_t queued = client.queued_bytes;
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} qbuf={} qbuf-free={} argv-mem={} multi-mem={} rbs=0 rbp=0 obl=0 oll={} omem={} "
      "tot-mem={} events={} cmd={} user={} redir={} resp={} lib-name={} lib-ver={}",
      client.id, client.address, client.local_address, client.fd, client.name(),
      (now_ms - client.created_ms) / 1000, idle_ms / 1000, flags_of(client), client.db.load(),
      client.subscribed_to(ChannelKind::kChannel), client.subscribed_to(ChannelKind::kPattern),
      client.subscribed_to(ChannelKind::kShard), client.queued.load(), input, input_free, arguments,
      queued, output_pieces, output + unsent, client.memory_bytes(), output > 0 ? "rw" : "r",
      command_name(client), client.account()->name, client.redirect(), client.resp.load(),
      client.library_name(), client.library_version());
}

}  // namespace ingot::access
