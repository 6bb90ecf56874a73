// Keeps the promise of `appendfsync everysec`: at most the last two seconds are lost on power loss.
// A thread syncs once a second while there is something to sync; a commit that would make the
// unsynced past longer than two seconds waits. When the engine has failed it is synced once more,
// for what was answered before; then neither does anything.
//
// Threads: the writer calls note_commit() and wait_turn(); the rest by any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/engine.h"

namespace ingot::data {

class Syncer {
 public:
  explicit Syncer(storage::Engine& engine) : engine_(engine) {}
  ~Syncer();  // stops, without a last sync

  void start();
  void stop();

  // Only while enabled does the thread sync (appendfsync everysec).
  void set_enabled(bool enabled);
  void note_commit();
  // Waits while the oldest unsynced commit is older than two seconds; true when it had to.
  bool wait_turn();
  uint64_t unsynced_ms() const;
  // Calls `then`, once, when all that is committed by now is synced, or never will be (false): at
  // once, or on the syncer's thread. It syncs for that, whatever the mode; or it waits for the next
  // sync that comes by itself or for somebody else.
  using Then = std::move_only_function<void(bool synced)>;
  enum class Wish : uint8_t { kNow, kWhenItComes };
  void when_synced(Then then, Wish wish = Wish::kNow);
  bool all_synced() const;  // that is committed

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  static void tell(std::unique_lock<std::mutex>& lock, std::vector<Then> waiting, bool synced);
  bool failed() const { return engine_.health() == storage::Health::kUndecided; }
  bool pending() const { return unsynced_ || syncing_; }
  Clock::time_point oldest() const { return syncing_ ? syncing_since_ : oldest_unsynced_; }

  storage::Engine& engine_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;    // for the thread
  std::condition_variable synced_;  // for the writer
  // All by mutex_:
  bool enabled_ = false;
  bool stopping_ = false;
  bool unsynced_ = false;
  Clock::time_point oldest_unsynced_;  // of what the next sync is for
  bool syncing_ = false;
  bool gave_up_ = false;             // once more was synced after the engine had failed
  Clock::time_point syncing_since_;  // the oldest commit that the running sync is for
  std::vector<Then> waiting_;        // for the next sync
  bool wanted_ = false;              // some of these do not wait until it comes by itself
  std::vector<Then> being_synced_;   // for the running one
  std::thread thread_;
};

}  // namespace ingot::data
