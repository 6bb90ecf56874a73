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
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/data/syncer.h"
#include "src/exec/block_table.h"
#include "src/exec/group.h"
#include "src/exec/held_keys.h"
#include "src/exec/near_records.h"
#include "src/exec/services.h"
#include "src/exec/successors.h"
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

  // A change of the server's own, a unit of its own: `make` runs in the writer, where it may read
  // the disk. When it is committed, or could not be, `done` is called, in the writer as well.
  void change(std::function<void(types::KeyWriter&)> make,
              std::function<void(const storage::Status&)> done);

  void set_policy(FsyncPolicy policy);
  void set_active_expire(bool active);
  // Of writes that may need more space (the denyoom flag). An empty error allows them again, as far
  // as the engine does: while it finds no space they are refused as well, and after a failed fsync
  // every write is. What is allowed may be so many bytes until the next call: a disk may fill up
  // before its free space is looked at again. When they are spent the writer waits for that call,
  // for half a second at most.
  void refuse_growth(std::string error, uint64_t allowed_bytes);

  // A script holds the writer, and has for long: clients whose commands wait behind it are answered
  // this error, but for those that are allowed then.
  void refuse_waiting(std::string_view error);

  // A replica has acknowledged something.
  void note_ack();
  // Replicas are asked how far they are.
  void ask_for_acks();
  // Tells those who follow the stream of changes, if it is on, behind all that is queued.
  void tell_replicas(std::string bytes) { enqueue({.told = std::move(bytes)}); }
  // Runs this on the writer's thread, behind all that is queued, while no group is open: it may be
  // no long work. Destroyed unrun when the writer has stopped.
  using Work = std::move_only_function<void()>;
  void between_groups(Work work) { enqueue({.between = std::move(work)}); }

  // Calls `then`, once, when a sync that comes by itself has taken in all that is committed by now,
  // or with false when none will.
  void after_sync(data::Syncer::Then then) {
    syncer_.when_synced(std::move(then), data::Syncer::Wish::kWhenItComes);
  }

  // In the writer, of the group that is open: see Group::adopt().
  void adopt(data::ChangeStream::Place place) { group_.adopt(std::move(place)); }
  // In the writer, between groups: all who wait in a command are answered this error.
  void end_blocked(std::string_view error);
  // In the writer, between groups: this server begins or ceases to follow another one. Changes that
  // wait for replicas are answered with an error.
  void change_stream();

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
  struct OwnChange {
    std::function<void(types::KeyWriter&)> make;
    std::function<void(const storage::Status&)> done;
  };
  struct Item {
    std::unique_ptr<WriteJob> job = nullptr;  // or a client's watches or wait are to be forgotten
    uint64_t unwatch_client = 0;
    uint64_t unblock_client = 0;
    std::shared_ptr<OverwrittenBatch> overwritten = nullptr;  // or what was overwritten is known
    std::shared_ptr<Recount> recount = nullptr;               // or a keyspace has been counted
    std::vector<BlockTable::Number> synced = {};              // or these have waited for a sync
    bool sync_failed = false;
    std::string told = {};                        // or replicas are told this
    bool acked = false;                           // or they have acknowledged something
    Work between = {};                            // or this is done between two groups
    std::shared_ptr<OwnChange> change = nullptr;  // or the server changes something by itself
  };
  struct HeldAnswer {
    std::unique_ptr<WriteJob> job;
    uint64_t offset;
    int64_t until_ms;  // Unix
  };
  // A job that goes on when the pool has done something for it, another has let its keys go, or
  // those behind it have had their turn.
  struct Suspended {
    std::unique_ptr<WriteJob> job;
    NeedsPool wish;  // without work: the blocks of its next unit
    bool only_waits = false;
  };

  // While a unit runs that may be a script, refuse_waiting() reaches what was taken with it.
  class ScriptTurn {
   public:
    ScriptTurn(Writer& writer, const Unit& unit);
    ~ScriptTurn();

   private:
    Writer& writer_;
    bool runs_;
  };

  // After an expiry that had to be put off.
  static constexpr int64_t kExpireRetryMs = 100;

  void run();
  std::vector<Item> take(bool* stopping);
  void gather(std::unique_lock<std::mutex>& lock, size_t expected);
  void await_look_at_space(std::unique_lock<std::mutex>& lock);
  void enqueue(Item item, net::IoThread* round = nullptr);
  void wake();
  size_t fetch_near(const std::vector<Item>& items, size_t first);
  void run_job(std::unique_ptr<WriteJob> job);
  Outcome run_unit(WriteJob& job);
  bool others_wait();
  void take_item(Item item);
  void make_change(std::shared_ptr<OwnChange> change);
  void decide_refusals();
  Group::Refusals refusals(const WriteJob& job) const;
  void give_up(std::unique_ptr<WriteJob> job);
  // --- writer_pool.cc
  void suspend(std::unique_ptr<WriteJob> job, NeedsPool wish);
  void resume_suspended();
  void load_blocks(std::unique_ptr<WriteJob> job);
  void fetch_wanted(std::unique_ptr<WriteJob> job);
  void work_in_pool(Suspended suspended);
  // --- writer_waits.cc
  void count_blocked();
  void note_fed();
  void serve_blocked();
  void end_waits();
  void end_wait(std::unique_ptr<WriteJob> job, std::string_view error, bool failed);
  void end_unblocked();
  void end_left(uint64_t client);
  void want_sync();
  void want_acks();
  void end_ack_waits();
  void reply_acked(const Unit::AwaitedAcks& acks, contract::RespSink& reply) const;
  void release_answer(HeldAnswer held, std::string_view error);
  void replace_answers(WriteJob& job, std::string_view error);
  void hold_for_acks();
  void need_stream();
  int64_t next_held_answer_ms() const;
  void end_sync_waits(const Item& item);
  bool is_held_back(const WriteJob& job) const;
  void release_keys(const WriteJob& job);
  void expire_due();
  int64_t next_expire_ms() const;
  void commit();
  void count_commit(std::chrono::nanoseconds took);
  void fail_group(const storage::Status& status);
  void answer();
  void answer_behind(Courier& courier);

  Services& services_;
  std::atomic<FsyncPolicy> policy_;
  std::atomic<size_t> blocked_clients_{0};
  std::atomic<size_t> timed_clients_{0};
  std::atomic<bool> active_expire_{true};
  std::atomic<uint64_t> growth_left_{std::numeric_limits<uint64_t>::max()};
  std::atomic<int64_t> expire_retry_ms_{0};  // set by the pool when it has fetched what is due

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable looked_at_space_;
  // By mutex_:
  std::vector<Item> queue_;
  std::span<Item> behind_script_;  // of items_
  bool stopping_ = false;
  bool stopped_ = false;
  bool sleeping_ = false;
  size_t wake_at_ = 1;      // so many items in the queue end the sleep
  size_t group_items_ = 0;  // of the queue, in the group before
  std::string growth_refusal_;
  bool growth_refusal_changed_ = false;
  bool nobody_looks_ = false;  // at the space that is left: what was waited for did not come

  // The writer thread's:
  Settling settling_;
  Group group_;
  NearRecords near_;
  storage::Health health_ = storage::Health::kHealthy;  // when refusals were decided
  bool lacks_replicas_ = false;
  bool is_growth_spent_ = false;
  std::string refuses_all_;
  std::string refuses_growth_;
  size_t group_units_ = 0;
  uint64_t commit_micros_ = 0;                       // of the last group
  std::vector<Item> items_;                          // taken from the queue
  size_t items_left_ = 0;                            // of them, not yet run
  std::vector<std::unique_ptr<WriteJob>> finished_;  // answered after the commit
  std::vector<std::shared_ptr<OwnChange>> changes_;  // told of the commit
  std::vector<Suspended> suspended_;                 // handed to the pool after the commit
  BlockTable blocked_;
  // Of those who wait for a sync, and of those who wait for replicas, since the last commit.
  std::vector<BlockTable::Number> want_sync_;
  std::vector<BlockTable::Number> want_acks_;
  std::vector<BlockTable::Number> ack_waits_;
  // Committed, and not answered before write-acks replicas have it; in the order of the stream.
  std::deque<HeldAnswer> held_answers_;
  Successors successors_;
  std::atomic<bool> ack_noted_{false};  // an item that tells of one is in the queue
  HeldKeys held_;
  std::vector<std::unique_ptr<WriteJob>> held_back_;  // until the end of a pause
  bool expire_stuck_ = false;

  data::Syncer syncer_;
  std::thread thread_;
};

}  // namespace ingot::exec
