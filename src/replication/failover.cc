// The steps of a failover, with Redis' words for what stops it.
#include "src/replication/failover.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/contract/args.h"
#include "src/contract/client.h"
#include "src/contract/replicas.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/replication/link_keeper.h"

namespace ingot::replication {

using contract::Replica;

namespace {

bool is_at(const contract::Client& replica, std::string_view host, int64_t port) {
  return replica.replica->port == port &&
         contract::equals_ignore_case(contract::ip_of(replica), host);
}

}  // namespace

Failover::Failover(exec::Services& services, exec::Writer& writer, LinkKeeper& links)
    : services_(services), writer_(writer), links_(links) {}

std::string Failover::begin(contract::FailoverRequest request) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kNone) return "ERR FAILOVER already in progress.";
  if (services_.following.asked) return "ERR FAILOVER is not valid when server is a replica.";
  const auto replicas = services_.replicas.all();
  if (replicas.empty()) return "ERR FAILOVER requires connected replicas.";
  if (request.force && (!request.host || request.timeout_ms == 0)) {
    return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
  }
  if (request.host) {
    const auto named = std::ranges::find_if(replicas, [&](const auto& replica) {
      return is_at(*replica, *request.host, request.port);
    });
    if (named == replicas.end()) return "ERR FAILOVER target HOST and PORT is not a replica.";
    if ((*named)->replica->state != Replica::State::kOnline) {
      return "ERR FAILOVER target replica is not online.";
    }
  }
  const int64_t now_ms = services_.data.store.now_ms();
  end_ms_ = request.timeout_ms > 0 ? now_ms + request.timeout_ms : 0;
  request_ = std::move(request);
  state_ = State::kWaitsForSync;
  settled_ = false;
  metrics::log::notice("FAILOVER requested to {}.", target());
  services_.pause.begin_failover();
  writer_.between_groups([this, round = ++round_] {
    std::lock_guard settles(mutex_);
    settled_ = settled_ || round == round_;
  });
  return {};
}

bool Failover::abort() {
  std::lock_guard lock(mutex_);
  if (state_ == State::kNone) return false;
  give_up("Failover manually aborted");
  return true;
}

void Failover::tick() {
  std::lock_guard lock(mutex_);
  if (state_ != State::kWaitsForSync || !settled_) return;
  if (find_caught_up()) {
    metrics::log::notice("Failover target is synced {}, failing over.", target());
    return hand_over();
  }
  if (end_ms_ == 0 || services_.data.store.now_ms() < end_ms_) return;
  if (!request_.force) return give_up("Replica never caught up before timeout");
  metrics::log::notice("Failover to {} time out exceeded, failing over.", target());
  hand_over();
}

std::string_view Failover::state() const {
  std::lock_guard lock(mutex_);
  switch (state_) {
    case State::kNone:
      return "no-failover";
    case State::kWaitsForSync:
      return "waiting-for-sync";
    case State::kInProgress:
      return "failover-in-progress";
  }
  return "";
}

std::string Failover::target() const {
  return request_.host ? fmt::format("{}:{}", *request_.host, request_.port) : "any replica";
}

// One that has everything becomes the target where none was named. (Who does not say where it
// listens, as redis-cli, cannot.)
bool Failover::find_caught_up() {
  const uint64_t offset = services_.data.changes.place().offset;
  for (const auto& client : services_.replicas.all()) {
    const Replica& replica = *client->replica;
    if (replica.state != Replica::State::kOnline || replica.acked != offset) continue;
    if (!request_.host && replica.port != 0) {
      request_.host = contract::ip_of(*client);
      request_.port = replica.port;
      return true;
    }
    if (request_.host && is_at(*client, *request_.host, request_.port)) return true;
  }
  return false;
}

void Failover::hand_over() {
  state_ = State::kInProgress;
  links_.follow({.host = *request_.host, .port = static_cast<int>(request_.port)},
                [this](bool accepted) { on_answer(accepted); });
}

void Failover::on_answer(bool accepted) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kInProgress) return;
  accepted ? clear() : give_up("Failover target rejected psync request");
}

void Failover::give_up(std::string_view why) {
  metrics::log::notice("Aborting failover to {}: {}", target(), why);
  if (state_ == State::kInProgress) links_.lead();
  clear();
}

void Failover::clear() {
  state_ = State::kNone;
  writer_.between_groups([this, round = ++round_] {
    std::lock_guard lock(mutex_);
    if (round == round_) services_.pause.end_failover();
  });
}

}  // namespace ingot::replication
