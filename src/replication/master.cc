// The parts of a master that work by time.
#include "src/replication/master.h"

#include "src/contract/replicas.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/replication/follower_source.h"
#include "src/settings/config.h"

namespace ingot::replication {

using contract::Client;
using contract::Replica;

namespace {

constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

}  // namespace

Master::Master(exec::Services& services, exec::Writer& writer)
    : services_(services), writer_(writer) {}

std::unique_ptr<net::BodySource> Master::follow(Client& client, contract::FollowRequest request) {
  if (!client.replica) client.replica = std::make_shared<Replica>();
  client.replica->state = Replica::State::kWaits;
  client.replica->acked_ms = services_.data.store.now_ms();
  const std::shared_ptr<Client> shared = services_.clients.find(client.id);
  if (shared == nullptr) return nullptr;
  client.follows = true;
  services_.replicas.add(shared);
  return std::make_unique<FollowerSource>(services_, writer_, shared, std::move(request));
}

void Master::tick() {
  const auto settings = services_.data.config.settings();
  const int64_t now_ms = services_.data.store.now_ms();
  data::ChangeStream& changes = services_.data.changes;
  changes.sweep();
  for (const auto& client : services_.replicas.all()) {
    const Replica& replica = *client->replica;
    if (replica.state != Replica::State::kOnline && replica.state != Replica::State::kLoads)
      continue;
    if (now_ms - heard_ms(*client, now_ms) <= settings->repl_timeout * 1000) continue;
    metrics::log::warning("Disconnecting timedout replica (streaming sync): {}", client->address);
    client->kill();
  }
  // A replica passes on what its master tells, and needs to know how far that has come.
  if (!changes.on() || services_.following.asked) return;
  if (services_.replicas.size() > 0) {
    alone_since_ms_ = 0;
    // In a failover somebody has to come to the end of it.
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::seconds period(settings->repl_ping_replica_period);
    if (now - pinged_ >= period && !services_.pause.in_failover()) {
      pinged_ = now;
      writer_.tell_replicas(std::string(kPing));
    }
    return;
  }
  if (services_.replicas.write_acks > 0) return;
  if (alone_since_ms_ == 0) alone_since_ms_ = now_ms;
  const int64_t ttl_ms = settings->repl_backlog_ttl * 1000;
  if (ttl_ms == 0 || now_ms - alone_since_ms_ < ttl_ms) return;
  alone_since_ms_ = 0;
  writer_.between_groups([this] {
    if (services_.replicas.size() > 0) return;
    metrics::log::notice("Nobody has followed for long: the stream of changes ends");
    if (storage::Status status = services_.data.changes.turn_off(); !status.ok()) {
      metrics::log::warning("It goes on: {}", status.message());
    }
  });
}

}  // namespace ingot::replication
