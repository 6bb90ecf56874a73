// What happens around a commit: its figures, the answers behind it, and those in place of them when
// it has failed.
#include <algorithm>
#include <chrono>
#include <utility>

#include "src/contract/errors.h"
#include "src/data/store.h"
#include "src/exec/courier.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"

namespace ingot::exec {

void Writer::commit() {
  bool always = policy_ == FsyncPolicy::kAlways;
  bool changed = !group_.empty();
  if (changed && syncer_.wait_turn()) metrics::add(services_.data.stats.sync_waits);
  const uint64_t left = growth_left_;
  growth_left_ = left - std::min<uint64_t>(left, group_.bytes());
  auto start = std::chrono::steady_clock::now();
  storage::Status status =
      group_.commit(always ? storage::Durability::kSynced : storage::Durability::kBuffered);
  if (changed) count_commit(std::chrono::steady_clock::now() - start);
  if (!status.ok()) {
    fail_group(status);
  } else if (changed && !always) {
    syncer_.note_commit();
  }
  for (const auto& change : std::exchange(changes_, {})) change->done(status);
  group_units_ = 0;
  want_sync();
  want_acks();
  hold_for_acks();
  answer();
  resume_suspended();
}

void Writer::count_commit(std::chrono::nanoseconds took) {
  const auto micros =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  commit_micros_ = micros;
  services_.data.stats.latency.note(metrics::latency::kCommit, took);
  metrics::Stats& stats = services_.data.stats;
  metrics::add(stats.writer_commit_micros, micros);
  metrics::add(stats.groups);
  metrics::add(stats.group_units, group_units_);
  if (group_units_ > stats.group_units_max) stats.group_units_max = group_units_;
}

// Of the units that have run in the last group.
void Writer::replace_answers(WriteJob& job, std::string_view error) {
  job.replies.truncate(job.committed_mark);
  for (size_t i = job.first_uncommitted; i < job.next; ++i) {
    contract::RespSink sink(job.replies, job.units[i].resp);
    if (!job.units[i].silent) sink.error(error);
  }
}

void Writer::fail_group(const storage::Status& status) {
  const std::string error = contract::write_error(status);
  // What was due is due still, but need not be tried at once.
  expire_retry_ms_ = services_.data.store.now_ms() + kExpireRetryMs;
  const auto undo = [&](WriteJob& job) {
    for (size_t i = job.first_uncommitted; i < job.next; ++i) {
      restore_client(services_, job, job.units[i]);
    }
    replace_answers(job, error);
    if (job.told_from && job.told_from->unit >= job.first_uncommitted) job.told_from.reset();
  };
  for (auto& job : finished_) undo(*job);
  for (auto& [job, wish, only_waits] : suspended_) {
    undo(*job);
    if (job->units[job->next].went_on.empty()) continue;
    contract::RespSink sink(job->replies, job->units[job->next].resp);
    if (!job->units[job->next].silent) sink.error(error);
    ++job->next;
  }
}

void Writer::answer() {
  if (Courier* courier = services_.couriers.overladen()) answer_behind(*courier);
  // One post for each I/O thread, not one for each connection.
  while (!finished_.empty()) {
    net::IoThread* thread = finished_.front()->thread;
    auto theirs = std::stable_partition(finished_.begin(), finished_.end(),
                                        [&](const auto& job) { return job->thread != thread; });
    std::vector<std::unique_ptr<WriteJob>> jobs(std::make_move_iterator(theirs),
                                                std::make_move_iterator(finished_.end()));
    finished_.erase(theirs, finished_.end());
    thread->post([jobs = std::move(jobs)] {
      for (const auto& job : jobs) job->done(std::move(job->replies), job->given_up);
    });
  }
}

// Those who tell others more than can be carried are answered when it has been.
void Writer::answer_behind(Courier& courier) {
  const auto theirs = std::stable_partition(finished_.begin(), finished_.end(),
                                            [](const auto& job) { return !job->told_others; });
  for (auto at = theirs; at != finished_.end(); ++at) {
    courier.behind_all([job = std::move(*at)]() mutable {
      net::IoThread& thread = *job->thread;
      thread.post([job = std::move(job)] { job->done(std::move(job->replies), job->given_up); });
    });
  }
  finished_.erase(theirs, finished_.end());
}

}  // namespace ingot::exec
