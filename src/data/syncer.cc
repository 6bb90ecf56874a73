// The thread that syncs once a second, and the wait of a commit that would run too far ahead.
#include "src/data/syncer.h"

#include <pthread.h>

#include <utility>

namespace ingot::data {

namespace {
constexpr std::chrono::seconds kInterval{1};
constexpr std::chrono::seconds kUnsyncedMax{2};
}  // namespace

Syncer::~Syncer() {
  stop();
}

void Syncer::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "syncer");
    run();
  });
}

void Syncer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  synced_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Syncer::set_enabled(bool enabled) {
  {
    std::lock_guard lock(mutex_);
    enabled_ = enabled;
  }
  wake_.notify_all();
  synced_.notify_all();
}

void Syncer::note_commit() {
  std::lock_guard lock(mutex_);
  if (unsynced_) return;
  unsynced_ = true;
  oldest_unsynced_ = Clock::now();
  wake_.notify_all();
}

bool Syncer::wait_turn() {
  std::unique_lock lock(mutex_);
  auto late = [this] {
    return enabled_ && !stopping_ && !failed() && pending() &&
           Clock::now() - oldest() > kUnsyncedMax;
  };
  if (!late()) return false;
  synced_.wait(lock, [&] { return !late(); });
  return true;
}

uint64_t Syncer::unsynced_ms() const {
  std::lock_guard lock(mutex_);
  if (!pending()) return 0;
  auto age = Clock::now() - oldest();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(age).count());
}

bool Syncer::all_synced() const {
  std::lock_guard lock(mutex_);
  return !pending() && !failed();
}

void Syncer::when_synced(Then then, Wish wish) {
  std::unique_lock lock(mutex_);
  if (!pending() || failed() || stopping_) {
    const bool synced = !pending() && !failed();
    lock.unlock();
    return then(synced);
  }
  (unsynced_ ? waiting_ : being_synced_).push_back(std::move(then));
  wanted_ = wanted_ || (unsynced_ && wish == Wish::kNow);
  wake_.notify_all();
}

void Syncer::tell(std::unique_lock<std::mutex>& lock, std::vector<Then> waiting, bool synced) {
  lock.unlock();
  for (Then& then : waiting) then(synced);
  lock.lock();
}

void Syncer::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (failed() && !waiting_.empty()) {
      tell(lock, std::exchange(waiting_, {}), false);
      continue;
    }
    if (!(enabled_ || wanted_) || !unsynced_ || gave_up_) {
      wake_.wait(lock);
      continue;
    }
    auto due = oldest_unsynced_ + kInterval;
    if (!wanted_ && Clock::now() < due) {
      wake_.wait_until(lock, due);
      continue;
    }
    being_synced_ = std::exchange(waiting_, {});
    wanted_ = false;
    // A commit from here on may miss this sync and starts a new age; until the sync is done the
    // older ones count.
    auto before = oldest_unsynced_;
    unsynced_ = false;
    syncing_since_ = before;
    syncing_ = true;
    lock.unlock();
    const bool synced = engine_.sync().ok();
    lock.lock();
    syncing_ = false;
    if (!synced) {
      unsynced_ = true;
      oldest_unsynced_ = before;
      gave_up_ = failed();
    }
    synced_.notify_all();
    tell(lock, std::exchange(being_synced_, {}), synced);
    if (!synced && !failed() && !stopping_) wake_.wait_for(lock, kInterval);
  }
}

}  // namespace ingot::data
