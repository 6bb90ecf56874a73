// Changing the master, and one link after another.
#include "src/replication/link_keeper.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "src/data/change_stream.h"
#include "src/exec/following.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/replication/link.h"
#include "src/settings/config.h"

namespace ingot::replication {

namespace {

using LinkState = contract::MasterLink::State;

// Between two attempts, as Redis.
constexpr std::chrono::seconds kRetry{1};

constexpr std::string_view kEndsWaits =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
}  // namespace

LinkKeeper::LinkKeeper(exec::Services& services, exec::Writer& writer)
    : services_(services), writer_(writer) {}

LinkKeeper::~LinkKeeper() {
  stop();
}

void LinkKeeper::start() {
  {
    std::lock_guard lock(mutex_);
    set_master(services_.data.config.settings()->master);
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "replica");
    run();
  });
}

void LinkKeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    if (link_) link_->interrupt();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// What is asked here and what the writer does follow each other in one order: mutex_ is held.
void LinkKeeper::set_master(settings::MasterAddress master) {
  exec::Following& following = services_.following;
  const bool follows = !master.host.empty();
  ++following.link;
  following.in_step = false;
  if (follows) following.asked = true;
  writer_.between_groups([this, follows] {
    const bool followed = std::exchange(services_.following.writer, follows);
    if (follows) writer_.end_blocked(kEndsWaits);
    if (follows != followed) writer_.change_stream();
    data::ChangeStream& changes = services_.data.changes;
    if (follows) changes.keep_id();
    if (!followed || follows || !changes.on()) return;
    if (const storage::Status status = changes.lead(); !status.ok()) {
      metrics::log::warning("The data cannot be given an id of their own: {}", status.message());
    }
    disconnect_followers(services_);
  });
  if (!follows) following.asked = false;
  master_ = std::move(master);
  ++changes_;
  on_taken_over_ = {};
  lost_ms_ = -1;
  has_parted_ = false;
  if (link_) link_->interrupt();
  link_.reset();
  wake_.notify_all();
}

bool LinkKeeper::follow(settings::MasterAddress master, Answer on_taken_over) {
  std::lock_guard lock(mutex_);
  if (master_ == master) return false;
  services_.data.config.set_master(master);
  metrics::log::notice("REPLICAOF {}:{}", master.host, master.port);
  set_master(std::move(master));
  on_taken_over_ = std::move(on_taken_over);
  return true;
}

void LinkKeeper::lead() {
  std::lock_guard lock(mutex_);
  if (master_.host.empty()) return;
  services_.data.config.set_master({});
  metrics::log::notice("MASTER MODE enabled");
  set_master({});
}

std::optional<contract::MasterLink> LinkKeeper::link() const {
  std::lock_guard lock(mutex_);
  if (master_.host.empty()) return std::nullopt;
  contract::MasterLink figures;
  if (link_) figures = link_->figures();
  figures.host = master_.host;
  figures.port = master_.port;
  // Sentinel takes the replica with the highest offset for the next master.
  const bool has_place = !has_parted_ && figures.state != LinkState::kTransfer;
  if (figures.state != LinkState::kConnected && figures.read_offset == 1 && has_place) {
    const data::ChangeStream::Place here = services_.data.changes.place();
    if (!here.id.empty()) figures.read_offset = figures.applied_offset = here.offset;
  }
  if (lost_ms_ >= 0) figures.down_s = (steady_ms() - lost_ms_) / 1000;
  return figures;
}

// For the next link: what a new master answers to the first that comes so far is told once.
LinkKeeper::Answer LinkKeeper::ask_to_lead() {
  if (!on_taken_over_) return {};
  return [this, change = changes_](bool accepted) {
    Answer answer;
    {
      std::lock_guard lock(mutex_);
      if (changes_ != change) return;
      answer = std::exchange(on_taken_over_, {});
    }
    answer(accepted);
  };
}

void LinkKeeper::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !master_.host.empty(); });
    if (stopping_) return;
    const uint64_t change = changes_;
    const auto link = std::make_shared<Link>(
        services_, writer_, *services_.data.config.settings(),
        [this, change]() -> std::optional<uint64_t> {
          std::lock_guard begins(mutex_);
          if (stopping_ || changes_ != change) return std::nullopt;
          return ++services_.following.link;
        },
        ask_to_lead());
    link_ = link;
    lock.unlock();
    const bool was_steady = link->run();
    lock.lock();
    if (stopping_) return;
    if (changes_ != change) continue;
    const LinkState reached = link->figures().state;
    if (reached == LinkState::kConnected) {
      lost_ms_ = steady_ms();
      has_parted_ = false;
    } else if (reached == LinkState::kTransfer) {
      has_parted_ = true;
    }
    link_.reset();
    // A stream that breaks is taken up at once, before the master forgets what was missed.
    if (was_steady) continue;
    wake_.wait_for(lock, kRetry, [&] { return stopping_ || changes_ != change; });
  }
}

}  // namespace ingot::replication
