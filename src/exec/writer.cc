// The writer's thread: its queue, its groups and what happens around a commit; see writer.h.
#include "src/exec/writer.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "src/exec/block_table.h"
#include "src/exec/dry_run.h"
#include "src/exec/group.h"
#include "src/exec/prefetch.h"
#include "src/exec/reader_pool.h"
#include "src/exec/store.h"
#include "src/exec/syncer.h"
#include "src/server/stats.h"

namespace ingot::exec {

namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kGroupBytesMax = 8 << 20;  // a group commits when its changes reach this
constexpr size_t kExpireBatch = 256;        // index entries taken in one group
constexpr int64_t kExpireRetryMs = 100;     // after an expiry that had to be put off

uint64_t micros_since(Steady::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - start).count());
}

}  // namespace

class Writer::Impl {
 public:
  Impl(Services& services, FsyncPolicy policy)
      : services_(services),
        policy_(policy),
        group_(services),
        syncer_(services.store.engine(),
                [this](const storage::Status& status) { on_sync_failure(status); }) {
    syncer_.set_enabled(policy == FsyncPolicy::kEverySecond);
  }

  void start();
  void stop();
  void submit(std::unique_ptr<WriteJob> job);
  void unwatch(uint64_t client_id) { enqueue({.job = nullptr, .unwatch_client = client_id}); }
  void unblock(uint64_t client_id) { enqueue({.job = nullptr, .unblock_client = client_id}); }
  void set_wanted_events(uint32_t kinds) { wanted_events_ = kinds; }
  bool wants_event(uint32_t kind) const {
    return (wanted_events_.load(std::memory_order_relaxed) & kind) != 0 && services_.on_events;
  }
  void set_policy(FsyncPolicy policy);
  void set_active_expire(bool active);
  void refuse(Refusal kind, std::string error);
  std::string refusal(Refusal kind) const;
  Figures figures() const;

 private:
  struct Item {
    std::unique_ptr<WriteJob> job;  // or what a client watches, or waits in, is to be forgotten
    uint64_t unwatch_client = 0;
    uint64_t unblock_client = 0;
  };

  void run();
  std::vector<Item> take(bool* stopping);
  void enqueue(Item item);
  void run_job(std::unique_ptr<WriteJob> job);
  void take_item(Item item);
  void serve_blocked();
  void end_waits();
  void suspend(std::unique_ptr<WriteJob> job, Group::Outcome why);
  void expire_due();
  int64_t next_expire_ms() const;
  void commit();
  void count_commit(uint64_t micros);
  void fail_group(const storage::Status& status);
  void load_blocks(std::unique_ptr<WriteJob> job);
  void prepare(std::unique_ptr<WriteJob> job, command::Prepare work, size_t index);
  void answer();
  static void refuse_rest(WriteJob& job, std::string_view error);
  void on_sync_failure(const storage::Status& status);

  Services& services_;
  std::atomic<FsyncPolicy> policy_;
  std::atomic<uint32_t> wanted_events_{0};
  std::atomic<size_t> blocked_clients_{0};
  std::atomic<bool> active_expire_{true};
  std::atomic<bool> sync_failed_{false};
  std::atomic<bool> disk_full_{false};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // By mutex_:
  std::vector<Item> queue_;
  bool stopping_ = false;
  bool stopped_ = false;
  bool sleeping_ = false;
  std::array<std::string, kRefusals> refusals_;
  bool refusals_changed_ = false;

  // The writer thread's:
  Group group_;
  std::array<std::string, kRefusals> group_refusals_;
  size_t group_units_ = 0;
  std::vector<std::unique_ptr<WriteJob>> finished_;  // answered after the commit
  BlockTable blocked_;
  struct Suspended {
    std::unique_ptr<WriteJob> job;
    command::Prepare work;
    size_t index;
  };
  std::vector<Suspended> suspended_;  // handed to the pool after the commit
  int64_t expire_retry_ms_ = 0;
  bool expire_stuck_ = false;

  Syncer syncer_;
  std::thread thread_;
};

void Writer::Impl::start() {
  syncer_.start();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "writer");
    run();
  });
}

void Writer::Impl::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  syncer_.stop();
}

void Writer::Impl::enqueue(Item item) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    if (!stopped_) {
      queue_.push_back(std::move(item));
      wake = std::exchange(sleeping_, false);
    } else {
      wake = false;
    }
  }
  if (wake) wake_.notify_one();
  if (item.job) {
    refuse_rest(*item.job, "ERR server is shutting down");
    auto* thread = item.job->thread;
    thread->post([job = std::move(item.job)] { job->done(std::move(job->replies)); });
  }
}

void Writer::Impl::submit(std::unique_ptr<WriteJob> job) {
  if (services_.store.can_probe()) return enqueue({.job = std::move(job)});
  load_blocks(std::move(job));
}

void Writer::Impl::set_policy(FsyncPolicy policy) {
  FsyncPolicy before = policy_.exchange(policy);
  syncer_.set_enabled(policy == FsyncPolicy::kEverySecond);
  // What was written under a weaker promise is made good now.
  if (policy == FsyncPolicy::kAlways && before != policy) {
    storage::Status status = services_.store.engine().sync();
    if (!status.ok()) on_sync_failure(status);
  }
}

void Writer::Impl::set_active_expire(bool active) {
  active_expire_ = active;
  std::lock_guard lock(mutex_);
  sleeping_ = false;
  wake_.notify_one();
}

void Writer::Impl::refuse(Refusal kind, std::string error) {
  std::lock_guard lock(mutex_);
  if (kind == Refusal::kAll && sync_failed_) return;
  refusals_[static_cast<size_t>(kind)] = std::move(error);
  refusals_changed_ = true;
}

std::string Writer::Impl::refusal(Refusal kind) const {
  std::lock_guard lock(mutex_);
  return refusals_[static_cast<size_t>(kind)];
}

Writer::Figures Writer::Impl::figures() const {
  std::lock_guard lock(mutex_);
  return {.queue_depth = queue_.size(),
          .blocked_clients = blocked_clients_,
          .unsynced_ms = syncer_.unsynced_ms(),
          .sync_failed = sync_failed_,
          .disk_full = disk_full_};
}

int64_t Writer::Impl::next_expire_ms() const {
  if (!active_expire_) return std::numeric_limits<int64_t>::max();
  return std::max(group_.next_due_ms(), expire_retry_ms_);
}

std::vector<Writer::Impl::Item> Writer::Impl::take(bool* stopping) {
  std::unique_lock lock(mutex_);
  while (queue_.empty() && !stopping_) {
    int64_t wait_ms =
        std::min(next_expire_ms(), blocked_.next_deadline_ms()) - services_.store.now_ms();
    if (wait_ms <= 0) break;
    sleeping_ = true;
    // Waits are bounded because the wall clock may be set.
    wake_.wait_for(lock, std::chrono::milliseconds(std::min<int64_t>(wait_ms, 60'000)));
    sleeping_ = false;
  }
  if (refusals_changed_) {
    group_refusals_ = refusals_;
    refusals_changed_ = false;
  }
  *stopping = stopping_;
  if (stopping_ && queue_.empty()) stopped_ = true;
  return std::exchange(queue_, {});
}

void Writer::Impl::run() {
  bool stopping = false;
  while (true) {
    std::vector<Item> items = take(&stopping);
    if (stopping && items.empty()) break;
    auto start = Steady::now();
    group_.want_events(services_.on_events ? wanted_events_.load() : 0);
    if (active_expire_ && next_expire_ms() <= services_.store.now_ms()) expire_due();
    end_waits();
    for (Item& item : items) {
      take_item(std::move(item));
      if (group_.bytes() > kGroupBytesMax) commit();
    }
    commit();
    server::add(services_.stats.writer_busy_micros, micros_since(start));
  }
}

void Writer::Impl::run_job(std::unique_ptr<WriteJob> job) {
  Group::Refusals refusals{.all = group_refusals_[0], .growing = group_refusals_[1]};
  job->first_uncommitted = job->next;
  job->committed_mark = job->replies.bytes.size();
  while (job->next < job->units.size()) {
    Group::Outcome outcome = group_.run(*job, refusals);
    if (outcome == Group::Outcome::kBlocks) {
      int db = job->units[job->next].db;
      blocked_.add(std::move(job), db, group_.take_block());
      blocked_clients_ = blocked_.size();
      group_.collect_touched(true);
      return;
    }
    if (outcome != Group::Outcome::kDone) return suspend(std::move(job), outcome);
    ++group_units_;
    ++job->next;
    job->tries = 0;
    if (!blocked_.empty()) serve_blocked();
  }
  finished_.push_back(std::move(job));
}

void Writer::Impl::take_item(Item item) {
  if (item.job) return run_job(std::move(item.job));
  if (item.unwatch_client != 0) group_.unwatch(item.unwatch_client);
  if (item.unblock_client != 0) blocked_.take_client(item.unblock_client).reset();
  blocked_clients_ = blocked_.size();
}

// Whatever the last unit stored is offered to those who wait for it, and what they store in turn.
void Writer::Impl::serve_blocked() {
  Group::Refusals refusals{.all = group_refusals_[0], .growing = group_refusals_[1]};
  auto note_fed = [this] {
    types::Effects effects = group_.take_touched();
    for (const auto& touched : effects.touched) blocked_.fed(touched.db, touched.key);
    for (const auto& swapped : effects.swapped) {
      blocked_.fed_all(swapped.a);
      blocked_.fed_all(swapped.b);
    }
  };
  note_fed();
  while (auto key = blocked_.next_fed()) {
    bool served = false;
    blocked_.offer(
        *key,
        [&](WriteJob& job, const command::Block& block) {
          job.first_uncommitted = job.next;
          job.committed_mark = job.replies.bytes.size();
          if (group_.run(job, refusals, command::Fed{key->second, block.memory}) !=
              Group::Outcome::kDone) {
            // Nothing is left of it: those behind need not try. (Unless it was gone from the start:
            // some wait for that, too.)
            const bool gone = served && !group_.exists(key->first, key->second);
            return gone ? BlockTable::Served::kStop : BlockTable::Served::kNo;
          }
          ++job.next;
          served = true;
          note_fed();
          return BlockTable::Served::kYes;
        },
        [this](std::unique_ptr<WriteJob> job) { finished_.push_back(std::move(job)); });
  }
  blocked_clients_ = blocked_.size();
  group_.collect_touched(!blocked_.empty());
}

void Writer::Impl::end_waits() {
  while (auto job = blocked_.take_due(services_.store.now_ms())) {
    Unit& unit = job->units[job->next++];
    job->first_uncommitted = job->next;
    command::RespSink reply(job->replies, unit.resp);
    if (!unit.silent) reply.null_array();
    job->committed_mark = job->replies.bytes.size();
    finished_.push_back(std::move(job));
  }
  blocked_clients_ = blocked_.size();
}

void Writer::Impl::suspend(std::unique_ptr<WriteJob> job, Group::Outcome why) {
  ++job->tries;
  server::add(services_.stats.rollbacks);
  Suspended suspended{.job = std::move(job), .work = nullptr, .index = 0};
  if (why == Group::Outcome::kNeedsWork) {
    server::add(services_.stats.prepared_units);
    suspended.work = group_.work();
    suspended.index = group_.work_index();
  }
  suspended_.push_back(std::move(suspended));
}

void Writer::Impl::expire_due() {
  if (!group_refusals_[0].empty()) {
    expire_retry_ms_ = services_.store.now_ms() + kExpireRetryMs;
    return;
  }
  if (group_.expire(kExpireBatch, /*may_read_disk=*/expire_stuck_)) {
    expire_stuck_ = false;
    expire_retry_ms_ = 0;
    if (!blocked_.empty()) serve_blocked();  // some wait for a stream, and are told that it went
    return;
  }
  // The due keys' records are on disk: the pool fetches them, then this is tried again.
  expire_stuck_ = true;
  expire_retry_ms_ = std::numeric_limits<int64_t>::max();
  warm_expiry(services_, kExpireBatch, [this] {
    std::lock_guard lock(mutex_);
    expire_retry_ms_ = 0;
    if (std::exchange(sleeping_, false)) wake_.notify_one();
  });
}

void Writer::Impl::commit() {
  bool always = policy_ == FsyncPolicy::kAlways;
  bool changed = !group_.empty();
  if (changed && syncer_.wait_turn()) server::add(services_.stats.sync_waits);
  auto start = Steady::now();
  storage::Status status =
      group_.commit(always ? storage::Durability::kSynced : storage::Durability::kBuffered);
  if (changed) count_commit(micros_since(start));
  if (!status.ok()) {
    fail_group(status);
  } else if (changed) {
    disk_full_.store(false, std::memory_order_relaxed);
    if (!always) syncer_.note_commit();
  }
  group_units_ = 0;
  answer();
}

void Writer::Impl::count_commit(uint64_t micros) {
  server::Stats& stats = services_.stats;
  server::add(stats.writer_commit_micros, micros);
  server::add(stats.groups);
  server::add(stats.group_units, group_units_);
  if (group_units_ > stats.group_units_max) stats.group_units_max = group_units_;
}

void Writer::Impl::fail_group(const storage::Status& status) {
  bool full = status.code() == storage::Status::Code::kNoSpace;
  std::string error = "MISCONF Errors writing to the AOF file: " +
                      (full ? std::string("No space left on device") : status.message());
  if (full) {
    disk_full_ = true;
  } else {
    on_sync_failure(status);
  }
  auto undo = [&](WriteJob& job) {
    job.replies.truncate(job.committed_mark);
    size_t ran = job.next;
    job.next = job.first_uncommitted;
    for (; job.next < ran; ++job.next) {
      restore_database(job, job.units[job.next]);
      command::RespSink sink(job.replies, job.units[job.next].resp);
      if (!job.units[job.next].silent) sink.error(error);
    }
  };
  for (auto& job : finished_) undo(*job);
  for (auto& suspended : suspended_) undo(*suspended.job);
}

void Writer::Impl::answer() {
  // One post for each I/O thread, not one for each connection.
  while (!finished_.empty()) {
    net::IoThread* thread = finished_.front()->thread;
    auto theirs = std::stable_partition(finished_.begin(), finished_.end(),
                                        [&](const auto& job) { return job->thread != thread; });
    std::vector<std::unique_ptr<WriteJob>> jobs(std::make_move_iterator(theirs),
                                                std::make_move_iterator(finished_.end()));
    finished_.erase(theirs, finished_.end());
    thread->post([jobs = std::move(jobs)] {
      for (const auto& job : jobs) job->done(std::move(job->replies));
    });
  }
  for (Suspended& suspended : std::exchange(suspended_, {})) {
    if (suspended.work) {
      prepare(std::move(suspended.job), std::move(suspended.work), suspended.index);
    } else {
      load_blocks(std::move(suspended.job));
    }
  }
}

// Fetches what the job's next unit read in vain, and the declared keys of those behind it.
void Writer::Impl::load_blocks(std::unique_ptr<WriteJob> job) {
  std::vector<std::string> cold;
  auto databases = services_.store.databases().map;
  for (size_t i = job->next; i < job->units.size(); ++i) {
    const Unit& unit = job->units[i];
    if (unit.row == nullptr) continue;
    auto keyspace = (*databases)[static_cast<size_t>(unit.db)];
    if (unit.transaction.empty()) {
      add_cold_keys(services_, *unit.row, unit.command->args, keyspace, &cold);
    }
    for (const auto& queued : unit.transaction) {
      add_cold_keys(services_, *queued.row, queued.command->args, keyspace, &cold);
    }
  }
  prefetch(services_, std::move(cold), [this, shared = job.release()] {
    std::unique_ptr<WriteJob> again(shared);
    if (again->tries == 0) return enqueue({.job = std::move(again)});
    services_.readers.submit([this, shared] {
      dry_run(services_, *shared);
      enqueue({.job = std::unique_ptr<WriteJob>(shared)});
    });
    (void)again.release();
  });
}

void Writer::Impl::prepare(std::unique_ptr<WriteJob> job, command::Prepare work, size_t index) {
  services_.readers.submit([this, shared = job.release(), work = std::move(work), index] {
    std::unique_ptr<WriteJob> owned(shared);
    Unit& unit = owned->units[owned->next];
    if (unit.prepared.size() <= index) unit.prepared.resize(index + 1);
    unit.prepared[index] = run_preparation(services_, work);
    enqueue({.job = std::move(owned)});
  });
}

void Writer::Impl::refuse_rest(WriteJob& job, std::string_view error) {
  for (; job.next < job.units.size(); ++job.next) {
    command::RespSink sink(job.replies, job.units[job.next].resp);
    if (!job.units[job.next].silent) sink.error(error);
  }
}

void Writer::Impl::on_sync_failure(const storage::Status& status) {
  std::lock_guard lock(mutex_);
  sync_failed_ = true;
  refusals_[0] = "MISCONF Errors writing to the AOF file: " + status.message();
  refusals_changed_ = true;
}

Writer::Writer() = default;
Writer::~Writer() {
  stop();
}
void Writer::start(Services& services, FsyncPolicy policy) {
  impl_ = std::make_unique<Impl>(services, policy);
  impl_->start();
}
void Writer::stop() {
  if (impl_) impl_->stop();
}
void Writer::submit(std::unique_ptr<WriteJob> job) {
  impl_->submit(std::move(job));
}
void Writer::unwatch(uint64_t client_id) {
  impl_->unwatch(client_id);
}
void Writer::unblock(uint64_t client_id) {
  impl_->unblock(client_id);
}
void Writer::set_wanted_events(uint32_t kinds) {
  impl_->set_wanted_events(kinds);
}
bool Writer::wants_event(uint32_t kind) const {
  return impl_->wants_event(kind);
}
void Writer::set_policy(FsyncPolicy policy) {
  impl_->set_policy(policy);
}
void Writer::set_active_expire(bool active) {
  impl_->set_active_expire(active);
}
void Writer::refuse(Refusal kind, std::string error) {
  impl_->refuse(kind, std::move(error));
}
std::string Writer::refusal(Refusal kind) const {
  return impl_->refusal(kind);
}
Writer::Figures Writer::figures() const {
  return impl_->figures();
}

}  // namespace ingot::exec
