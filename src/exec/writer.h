// The one thread that changes data. It takes every queued unit, runs them one after another on an
// overlay, commits them as one group with one WAL append, and releases their effects in order.
// A group forms by itself while the last one commits.
//
// A unit whose reads need the disk is rolled back; the pool loads its blocks (and those of the
// units behind it in its job), then the job goes on. Only that connection waits.
//
// Threads: everything by any thread, except where it says otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/data/syncer.h"
#include "src/exec/block_table.h"
#include "src/exec/group.h"
#include "src/exec/held_keys.h"
#include "src/exec/services.h"
#include "src/exec/write_job.h"

namespace ingot::exec {

enum class FsyncPolicy : uint8_t { kAlways, kEverySecond, kNever };

class Writer {
 public:
  Writer(Services& services, FsyncPolicy policy);
  ~Writer();  // stop()
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Before anything else is called.
  void start();
  // Commits what is queued and makes it durable, then joins. Later jobs are answered with an error.
  void stop();

  void submit(std::unique_ptr<WriteJob> job);
  // Forgets what the client watches, after everything submitted before.
  void unwatch(uint64_t client_id) { enqueue({.unwatch_client = client_id}); }
  // The client has gone: what it waits in (a blocking command) is given up.
  void unblock(uint64_t client_id) { enqueue({.unblock_client = client_id}); }

  void set_policy(FsyncPolicy policy);
  void set_active_expire(bool active);
  // Of writes that may need more space (the denyoom flag). An empty error allows them again, as far
  // as the engine does: while it finds no space they are refused as well, and after a failed fsync
  // every write is.
  void refuse_growth(std::string error);

  struct Figures {
    size_t queue_depth = 0;  // jobs waiting
    // Waiting in a blocking command, or for the end of a pause.
    size_t blocked_clients = 0;
    size_t timed_clients = 0;     // ... in one that ends by itself
    uint64_t unsynced_ms = 0;     // age of the oldest commit not yet on stable storage
    uint64_t unsettled_keys = 0;  // overwritten, and what they held is being read
  };
  Figures figures() const;

 private:
  struct Item {
    std::unique_ptr<WriteJob> job = nullptr;  // or a client's watches or wait are to be forgotten
    uint64_t unwatch_client = 0;
    uint64_t unblock_client = 0;
    std::shared_ptr<OverwrittenBatch> overwritten = nullptr;  // or what was overwritten is known
    std::shared_ptr<Recount> recount = nullptr;               // or a keyspace has been counted
    std::vector<BlockTable::Number> synced = {};              // or these have waited for a sync
    bool sync_failed = false;
  };
  // A job that goes on when the pool has done something for it, another has let its keys go, or
  // those behind it have had their turn.
  struct Suspended {
    std::unique_ptr<WriteJob> job;
    NeedsPool wish;  // without work: the blocks of its next unit
    bool only_waits = false;
  };

  void run();
  std::vector<Item> take(bool* stopping);
  void gather(std::unique_lock<std::mutex>& lock, size_t expected);
  void enqueue(Item item);
  void run_job(std::unique_ptr<WriteJob> job);
  bool others_wait();
  void take_item(Item item);
  void decide_refusals();
  Group::Refusals refusals() const { return {.all = refuses_all_, .growing = refuses_growth_}; }
  void give_up(std::unique_ptr<WriteJob> job);
  // --- writer_waits.cc
  void count_blocked();
  void note_fed();
  void serve_blocked();
  void end_waits();
  void end_wait(std::unique_ptr<WriteJob> job, std::string_view error);
  void end_unblocked();
  void want_sync();
  void end_sync_waits(const Item& item);
  bool is_held_back(const WriteJob& job) const;
  void suspend(std::unique_ptr<WriteJob> job, NeedsPool wish);
  void release_keys(const WriteJob& job);
  void expire_due();
  int64_t next_expire_ms() const;
  void commit();
  void count_commit(std::chrono::nanoseconds took);
  void fail_group(const storage::Status& status);
  void answer();
  void answer_behind(Courier& courier);
  void resume_suspended();
  void load_blocks(std::unique_ptr<WriteJob> job);
  void work_in_pool(Suspended suspended);

  Services& services_;
  std::atomic<FsyncPolicy> policy_;
  std::atomic<size_t> blocked_clients_{0};
  std::atomic<size_t> timed_clients_{0};
  std::atomic<bool> active_expire_{true};
  std::atomic<int64_t> expire_retry_ms_{0};  // set by the pool when it has fetched what is due

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // By mutex_:
  std::vector<Item> queue_;
  bool stopping_ = false;
  bool stopped_ = false;
  bool sleeping_ = false;
  size_t wake_at_ = 1;  // so many items in the queue end the sleep
  std::string growth_refusal_;
  bool growth_refusal_changed_ = false;

  // The writer thread's:
  Settling settling_;
  Group group_;
  storage::Health health_ = storage::Health::kHealthy;  // when refusals were decided
  std::string refuses_all_;
  std::string refuses_growth_;
  size_t group_units_ = 0;
  size_t group_items_ = 0;                           // of the queue, in the group before
  uint64_t commit_micros_ = 0;                       // of the last group
  size_t items_left_ = 0;                            // taken from the queue and not yet run
  std::vector<std::unique_ptr<WriteJob>> finished_;  // answered after the commit
  std::vector<Suspended> suspended_;                 // handed to the pool after the commit
  BlockTable blocked_;
  std::vector<BlockTable::Number>
      want_sync_;  // of those who wait for a sync, since the last commit
  HeldKeys held_;
  std::vector<std::unique_ptr<WriteJob>> held_back_;  // until the end of a pause
  bool expire_stuck_ = false;

  data::Syncer syncer_;
  std::thread thread_;
};

}  // namespace ingot::exec
