// Those whom the writer keeps waiting: until a key is fed, a time is over, or somebody ends that;
// and until the end of a pause of all clients.
#include <utility>

#include "src/contract/client_registry.h"
#include "src/contract/errors.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"

namespace ingot::exec {

// It came before the pause began, or it would wait in its session.
bool Writer::is_held_back(const WriteJob& job) const {
  if (!services_.pause.is_on()) return false;
  const Unit& unit = job.units[job.next];
  return unit.row != nullptr && is_change(*unit.row, unit.transaction);
}

void Writer::count_blocked() {
  blocked_clients_ = blocked_.size();
  timed_clients_ = blocked_.timed();
}

void Writer::note_fed() {
  const types::Effects effects = group_.take_touched();
  for (const auto& touched : effects.touched) blocked_.fed(touched.db, touched.key);
  for (const auto& swapped : effects.swapped) {
    blocked_.fed_all(swapped.a);
    blocked_.fed_all(swapped.b);
  }
}

// Whatever the last unit stored is offered to those who wait for it, and what they store in turn.
void Writer::serve_blocked() {
  note_fed();
  while (const auto key = blocked_.next_fed()) {
    bool any_served = false;
    const auto serve = [&](WriteJob& job, const contract::Block& block) {
      if (job.client->leaving) return BlockTable::Served::kNo;  // its unblock() is on its way
      job.first_uncommitted = job.next;
      job.committed_mark = job.replies.bytes.size();
      const Outcome outcome = group_.run(job, refusals(), contract::Fed{key->second, block.memory});
      if (!std::holds_alternative<Done>(outcome)) {
        // Nothing is left of it: those behind need not try. (Unless it was gone from the start:
        // some wait for that, too.)
        const bool gone = any_served && !group_.exists(key->first, key->second);
        return gone ? BlockTable::Served::kStop : BlockTable::Served::kNo;
      }
      ++job.next;
      any_served = true;
      note_fed();
      return BlockTable::Served::kYes;
    };
    blocked_.offer(*key, serve,
                   [this](std::unique_ptr<WriteJob> job) { finished_.push_back(std::move(job)); });
  }
  count_blocked();
  group_.collect_touched(!blocked_.empty());
}

// `error` empty: its time is over.
void Writer::end_wait(std::unique_ptr<WriteJob> job, std::string_view error) {
  Unit& unit = job->units[job->next++];
  job->first_uncommitted = job->next;
  contract::RespSink reply(job->replies, unit.resp);
  if (!unit.silent && !error.empty()) {
    reply.error(error);
  } else if (!unit.silent) {
    unit.waits_for_sync ? contract::reply_synced(reply, false) : reply.null_array();
  }
  if (!error.empty()) services_.data.stats.count_error(error);
  job->committed_mark = job->replies.bytes.size();
  finished_.push_back(std::move(job));
  count_blocked();
  group_.collect_touched(!blocked_.empty());
}

void Writer::end_waits() {
  while (auto job = blocked_.take_due(services_.data.store.now_ms())) {
    end_wait(std::move(job), {});
  }
}

// What the last unit has asked for.
void Writer::end_unblocked() {
  for (const types::Effects::Unblocked& each : group_.take_unblocked()) {
    if (auto job = blocked_.take_client(each.client)) {
      end_wait(std::move(job),
               each.as_error ? "UNBLOCKED client unblocked via CLIENT UNBLOCK" : "");
    }
  }
}

// After a commit: whoever waits for what it has written to be on stable storage.
void Writer::want_sync() {
  if (want_sync_.empty()) return;
  syncer_.when_synced([this, waiters = std::exchange(want_sync_, {})](bool synced) mutable {
    enqueue({.synced = std::move(waiters), .sync_failed = !synced});
  });
}

void Writer::end_sync_waits(const Item& item) {
  for (const BlockTable::Number number : item.synced) {
    auto job = blocked_.take(number);
    if (job == nullptr) continue;  // it ran out of time, or its client has left
    job->first_uncommitted = job->next;
    job->committed_mark = job->replies.bytes.size();
    const Unit& unit = job->units[job->next];
    if (!item.sync_failed) {
      (void)group_.run(*job, refusals(), contract::Fed{});
    } else if (!unit.silent) {
      contract::RespSink reply(job->replies, unit.resp);
      reply.error(contract::write_error(services_.data.store.engine().trouble()));
    }
    ++job->next;
    finished_.push_back(std::move(job));
  }
}

}  // namespace ingot::exec
