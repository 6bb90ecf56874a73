// The writer's thread: its queue, its jobs, and those that it hands to the pool.
#include "src/exec/writer.h"

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

#include "src/contract/errors.h"
#include "src/contract/replicas.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/dry_run.h"
#include "src/exec/following.h"
#include "src/exec/prefetch.h"
#include "src/metrics/stats.h"

namespace ingot::exec {

namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kGroupBytesMax = 8 << 20;  // a group commits when its changes reach this
constexpr std::chrono::milliseconds kGatherMax{1};
constexpr std::chrono::milliseconds kLookMax{500};  // then nobody looks at the disk
// Jobs for whose sake the writer is woken before the I/O thread that has them is done with all that
// is there: two switches between threads for each job cost more than most jobs.
constexpr size_t kRoundItems = 16;
constexpr int64_t kTurnMs = 8;        // a job runs; then it is others' turn
constexpr size_t kExpireBatch = 256;  // index entries taken in one group

uint64_t micros_since(Steady::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - start).count());
}

// Costs next to nothing, and is some milliseconds late.
int64_t coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

storage::Status shutting_down() {
  return {storage::Status::Code::kBusy, "the server is shutting down"};
}

void refuse_rest(WriteJob& job, std::string_view error) {
  for (; job.next < job.units.size(); ++job.next) {
    contract::RespSink sink(job.replies, job.units[job.next].resp);
    if (!job.units[job.next].silent) sink.error(error);
  }
}

bool is_blocking(const WriteJob& job) {
  const Unit& unit = job.units[job.next];
  return unit.row != nullptr && contract::may_block(*unit.row);
}

}  // namespace

Writer::Writer(Services& services, FsyncPolicy policy)
    : services_(services),
      policy_(policy),
      settling_(
          services,
          [this](std::shared_ptr<OverwrittenBatch> batch) {
            enqueue({.overwritten = std::move(batch)});
          },
          [this](std::shared_ptr<Recount> recount) { enqueue({.recount = std::move(recount)}); }),
      group_(services, settling_),
      near_(services),
      successors_(services.replicas, services.data.store.now_ms()),
      syncer_(services.data.store.engine()) {
  syncer_.set_enabled(policy == FsyncPolicy::kEverySecond);
}

Writer::~Writer() {
  stop();
}

void Writer::start() {
  syncer_.start();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "writer");
    run();
  });
}

void Writer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  settling_.stop();
  if (thread_.joinable()) thread_.join();
  syncer_.stop();
}

// `round`: the I/O thread on which this runs, which has more to give before it rests.
void Writer::enqueue(Item item, net::IoThread* round) {
  {
    std::unique_lock lock(mutex_);
    if (!stopped_) {
      queue_.push_back(std::move(item));
      const bool waits = round != nullptr && group_items_ > 1 && queue_.size() < kRoundItems;
      const bool asleep = sleeping_ && queue_.size() >= wake_at_;
      if (asleep && !waits) sleeping_ = false;
      lock.unlock();
      if (!asleep) return;
      if (!waits) return wake_.notify_one();
      return round->post([this] { wake(); });
    }
  }
  if (item.change) item.change->done(shutting_down());
  if (!item.job) return;
  refuse_rest(*item.job, "ERR server is shutting down");
  net::IoThread& thread = *item.job->thread;
  thread.post([job = std::move(item.job)] { job->done(std::move(job->replies), job->given_up); });
}

void Writer::wake() {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() < wake_at_ || !std::exchange(sleeping_, false)) return;
  }
  wake_.notify_one();
}

void Writer::submit(std::unique_ptr<WriteJob> job) {
  job->queued_ms = coarse_ms();
  if (!services_.data.store.can_probe()) return load_blocks(std::move(job));
  net::IoThread* const round = job->thread->is_current() ? job->thread : nullptr;
  enqueue({.job = std::move(job)}, round);
}

void Writer::set_policy(FsyncPolicy policy) {
  FsyncPolicy before = policy_.exchange(policy);
  syncer_.set_enabled(policy == FsyncPolicy::kEverySecond);
  // What was written under a weaker promise is made good now, beside whoever asked for it.
  if (policy == FsyncPolicy::kAlways && before != policy) syncer_.when_synced([](bool) {});
}

void Writer::set_active_expire(bool active) {
  active_expire_ = active;
  std::lock_guard lock(mutex_);
  sleeping_ = false;
  wake_.notify_one();
}

void Writer::refuse_growth(std::string error, uint64_t allowed_bytes) {
  std::lock_guard lock(mutex_);
  growth_left_ = allowed_bytes;
  nobody_looks_ = false;
  looked_at_space_.notify_one();
  if (error == growth_refusal_) return;
  growth_refusal_ = std::move(error);
  growth_refusal_changed_ = true;
}

// What was allowed is spent, which does not say that there is no room: to refuse is for who looks.
void Writer::await_look_at_space(std::unique_lock<std::mutex>& lock) {
  const auto is_decided = [this] { return growth_left_ != 0 || !growth_refusal_.empty(); };
  if (is_decided() || nobody_looks_) return;
  nobody_looks_ = !looked_at_space_.wait_for(lock, kLookMax, is_decided);
}

// By mutex_.
void Writer::decide_refusals() {
  const storage::Engine& engine = services_.data.store.engine();
  const storage::Health health = engine.health();
  const bool lacks_replicas =
      !services_.following.writer && services_.replicas.lacks_some(services_.data.store.now_ms());
  const bool is_growth_spent = growth_left_ == 0;
  if (health == health_ && !growth_refusal_changed_ && lacks_replicas == lacks_replicas_ &&
      is_growth_spent == is_growth_spent_) {
    return;
  }
  health_ = health;
  is_growth_spent_ = is_growth_spent;
  lacks_replicas_ = lacks_replicas;
  growth_refusal_changed_ = false;
  refuses_all_ = lacks_replicas ? contract::kTooFewReplicas : "";
  refuses_growth_ = growth_refusal_;
  if (health == storage::Health::kUndecided) refuses_all_ = contract::write_error(engine.trouble());
  if (health == storage::Health::kNoSpace || (refuses_growth_.empty() && is_growth_spent)) {
    refuses_growth_ = contract::write_error({storage::Status::Code::kNoSpace, {}});
  }
}

// What a master sends is bound only by what storage can take.
Group::Refusals Writer::refusals(const WriteJob& job) const {
  const Following& following = services_.following;
  const bool read_only = following.writer && following.read_only && refuses_all_.empty() &&
                         !job.units[job.next].from_master;
  return {.all = read_only ? kReadOnly : refuses_all_, .growing = refuses_growth_};
}

Writer::Figures Writer::figures() const {
  std::lock_guard lock(mutex_);
  return {.queue_depth = queue_.size(),
          .blocked_clients = blocked_clients_ + services_.pause.waiting(),
          .timed_clients = timed_clients_,
          .unsynced_ms = syncer_.unsynced_ms(),
          .unsettled_keys = settling_.pending()};
}

int64_t Writer::next_expire_ms() const {
  const bool rests = services_.pause.is_on() || services_.following.writer;
  if (!active_expire_ || rests) return std::numeric_limits<int64_t>::max();
  return std::max(group_.next_due_ms(), expire_retry_ms_.load());
}

std::vector<Writer::Item> Writer::take(bool* stopping) {
  std::unique_lock lock(mutex_);
  // Whoever was answered with the last group will soon be back.
  const size_t expected = queue_.size() + group_items_;
  while (queue_.empty() && !stopping_) {
    const int64_t wait_ms =
        std::min({next_expire_ms(), blocked_.next_deadline_ms(), settling_.next_recount_ms(),
                  services_.pause.until_ms(), next_held_answer_ms()}) -
        services_.data.store.now_ms();
    if (wait_ms <= 0) break;
    sleeping_ = true;
    // Waits are bounded because the wall clock may be set.
    wake_.wait_for(lock, std::chrono::milliseconds(std::min<int64_t>(wait_ms, 60'000)));
    sleeping_ = false;
  }
  if (!queue_.empty() && policy_ == FsyncPolicy::kAlways) gather(lock, expected);
  await_look_at_space(lock);
  group_items_ = queue_.size();
  decide_refusals();
  *stopping = stopping_;
  if (stopping_ && queue_.empty()) stopped_ = true;
  return std::exchange(queue_, {});
}

// A group costs one sync, however many are in it: so it is worth a part of that to have them all in
// one, instead of halves in turn.
void Writer::gather(std::unique_lock<std::mutex>& lock, size_t expected) {
  const auto patience = std::min<std::chrono::microseconds>(
      std::chrono::microseconds(commit_micros_ / 4), kGatherMax);
  wake_at_ = expected;
  sleeping_ = true;
  wake_.wait_for(lock, patience, [&] { return queue_.size() >= expected || stopping_; });
  sleeping_ = false;
  wake_at_ = 1;
}

void Writer::run() {
  bool stopping = false;
  while (true) {
    items_ = take(&stopping);
    if (stopping && items_.empty()) break;
    auto start = Steady::now();
    need_stream();
    group_.tell_changes(services_.tracking.any());
    group_.begin_recount();
    if (services_.pause.until_ms() <= services_.data.store.now_ms()) services_.pause.end();
    if (active_expire_ && next_expire_ms() <= services_.data.store.now_ms()) expire_due();
    end_waits();
    if (next_held_answer_ms() <= services_.data.store.now_ms()) end_ack_waits();
    items_left_ = items_.size();
    size_t near = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (i == near) near = fetch_near(items_, i);
      --items_left_;
      take_item(std::move(items_[i]));
      // Not early where each commit waits for the disk.
      const bool early = group_.overlay().wants_commit() && policy_ != FsyncPolicy::kAlways;
      if (early || group_.bytes() > kGroupBytesMax) commit();
    }
    commit();
    metrics::add(services_.data.stats.writer_busy_micros, micros_since(start));
  }
  for (auto& waiting : held_.give_up()) enqueue({.job = std::move(waiting)});  // are refused
  for (auto& waiting : held_back_) enqueue({.job = std::move(waiting)});
}

// What the items from `first` on will look up. Answers where to go on with that.
size_t Writer::fetch_near(const std::vector<Item>& items, size_t first) {
  size_t end = first;
  while (end < items.size() && (!items[end].job || near_.add(*items[end].job))) ++end;
  near_.fetch(&group_.overlay());
  return end;
}

bool Writer::others_wait() {
  if (items_left_ > 0) return true;
  std::lock_guard lock(mutex_);
  return !queue_.empty();
}

void Writer::run_job(std::unique_ptr<WriteJob> job) {
  const int64_t begins = coarse_ms();
  int64_t turn_ends = begins + kTurnMs;
  if (const int64_t queued = std::exchange(job->queued_ms, 0); queued != 0) {
    services_.data.stats.latency.note(metrics::latency::kQueue,
                                      std::chrono::milliseconds(begins - queued));
  }
  job->first_uncommitted = job->next;
  job->committed_mark = job->replies.bytes.size();
  group_.begin_turn();
  while (job->next < job->units.size()) {
    if (is_held_back(*job)) {
      suspended_.push_back({.job = std::move(job), .wish = {}, .only_waits = true});
      return;
    }
    if (!held_.empty() && held_.is_held_from(*job)) {
      suspended_.push_back({.job = std::move(job), .wish = {}, .only_waits = true});
      return;
    }
    // The client has left while blocks were fetched: what it takes now nobody would have.
    const bool was_fetched =
        job->tries > 0 || job->fetches > 0 || !services_.data.store.can_probe();
    if (was_fetched && job->client->leaving && is_blocking(*job)) return give_up(std::move(job));
    if (job->client->gone && !job->units[job->next].went_on.empty()) {
      return give_up(std::move(job));
    }
    Outcome outcome = run_unit(*job);
    if (auto* waits = std::get_if<Waits>(&outcome)) {
      if (job->client->leaving) return give_up(std::move(job));
      const int db = job->units[job->next].db;
      job->units[job->next].waits_since.reset();  // what it waits for from here on is not work
      if (!held_.empty()) release_keys(*job);
      const bool for_sync = waits->block.for_sync;
      const std::optional<size_t> for_acks = waits->block.for_acks;
      if (for_acks) {
        job->units[job->next].waits_for_acks = {.replicas = *for_acks,
                                                .offset = services_.replicas.changed,
                                                .on_disk = waits->block.on_disk,
                                                .for_sync = for_sync};
      }
      const BlockTable::Number number = blocked_.add(std::move(job), db, std::move(waits->block));
      if (for_sync) want_sync_.push_back(number);
      if (for_acks) want_acks_.push_back(number);
      count_blocked();
      group_.collect_touched(true);
      return;
    }
    if (auto* more = std::get_if<GoesOn>(&outcome)) {
      job->units[job->next].went_on = std::move(more->memory);
      job->tries = 0;
      job->fetches = 0;
      ++group_units_;
      if (!blocked_.empty()) serve_blocked();
      suspended_.push_back({.job = std::move(job), .wish = {}, .only_waits = true});
      return;
    }
    if (auto* wish = std::get_if<NeedsPool>(&outcome)) {
      metrics::add(services_.data.stats.pool_built_units);
      if (wish->holds) held_.hold(*job, std::move(*wish->holds));
      return suspend(std::move(job), std::move(*wish));
    }
    if (const auto* needs = std::get_if<NeedsDisk>(&outcome)) {
      job->lacks_levels = needs->of_levels;
      return suspend(std::move(job), {});
    }
    if (!held_.empty()) release_keys(*job);
    ++group_units_;
    ++job->next;
    job->tries = 0;
    job->fetches = 0;
    if (!blocked_.empty()) end_unblocked();
    if (!blocked_.empty()) serve_blocked();
    if (coarse_ms() <= turn_ends || job->next == job->units.size()) continue;
    // What has run is committed then, whoever comes: a large commit is a long wait, too. With an
    // fsync for each it had better be large.
    if (policy_ != FsyncPolicy::kAlways || others_wait()) {
      suspended_.push_back({.job = std::move(job), .wish = {}, .only_waits = true});
      return;
    }
    turn_ends = coarse_ms() + kTurnMs;
  }
  finished_.push_back(std::move(job));
}

Outcome Writer::run_unit(WriteJob& job) {
  const ScriptTurn turn(*this, job.units[job.next]);
  return group_.run(job, refusals(job));
}

void Writer::release_keys(const WriteJob& job) {
  for (auto& waiting : held_.release(job)) enqueue({.job = std::move(waiting)});
}

// Nobody is there to wait. Were the client to leave a moment later, unblock() would come after it.
void Writer::give_up(std::unique_ptr<WriteJob> job) {
  if (!held_.empty()) release_keys(*job);
  job->given_up = true;
  finished_.push_back(std::move(job));
}

void Writer::take_item(Item item) {
  if (item.job) return run_job(std::move(item.job));
  if (item.unwatch_client != 0) group_.unwatch(item.unwatch_client);
  if (item.overwritten) group_.settle(*item.overwritten);
  if (item.recount) group_.settle(*item.recount);
  if (item.change) make_change(std::move(item.change));
  if (!item.synced.empty()) end_sync_waits(item);
  if (item.unblock_client != 0) end_left(item.unblock_client);
  if (item.acked) {
    ack_noted_ = false;
    end_ack_waits();
  }
  if (!item.told.empty() && !services_.following.writer) group_.tell_replicas(item.told);
  if (item.between) {
    commit();
    item.between();
  }
  count_blocked();
}

void Writer::change(std::function<void(types::KeyWriter&)> make,
                    std::function<void(const storage::Status&)> done) {
  enqueue({.change = std::make_shared<OwnChange>(OwnChange{std::move(make), std::move(done)})});
}

void Writer::make_change(std::shared_ptr<OwnChange> change) {
  if (const storage::Status status = group_.change(change->make); !status.ok()) {
    return change->done(status);
  }
  changes_.push_back(std::move(change));
  if (!blocked_.empty()) serve_blocked();
}

void Writer::expire_due() {
  if (!refuses_all_.empty()) {
    expire_retry_ms_ = services_.data.store.now_ms() + kExpireRetryMs;
    return;
  }
  const auto start = Steady::now();
  const bool done = group_.expire(kExpireBatch, /*may_read_disk=*/expire_stuck_);
  metrics::Stats& stats = services_.data.stats;
  stats.latency.note(metrics::latency::kExpireCycle, Steady::now() - start);
  metrics::add(stats.expire_micros, micros_since(start));
  if (done && group_.next_due_ms() <= services_.data.store.now_ms()) {
    metrics::add(stats.expire_batches_full);
  }
  if (done) {
    expire_stuck_ = false;
    expire_retry_ms_ = 0;
    if (!blocked_.empty()) serve_blocked();  // some wait for a stream, and are told that it went
    return;
  }
  // The due keys' records are on disk: the pool fetches them, then this is tried again.
  expire_stuck_ = true;
  expire_retry_ms_ = std::numeric_limits<int64_t>::max();
  warm_expiry(services_, kExpireBatch, group_.expiry_low_water(), [this] {
    expire_retry_ms_ = 0;
    std::lock_guard lock(mutex_);
    if (std::exchange(sleeping_, false)) wake_.notify_one();
  });
}

}  // namespace ingot::exec
