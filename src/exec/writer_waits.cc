// Those whom the writer keeps waiting: until a key is fed, a time is over, or somebody ends that;
// and until the end of a pause of all clients.
#include <utility>

#include "src/contract/client_registry.h"
#include "src/contract/errors.h"
#include "src/contract/replicas.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/accounting.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/metrics/stats.h"

namespace ingot::exec {

namespace {

constexpr std::string_view kGetAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
constexpr std::string_view kTooFewAcks =
    "NOREPLICAS The change is kept here, but too few replicas have acknowledged it in time.";

}  // namespace

// It came before the pause began, or it would wait in its session.
bool Writer::is_held_back(const WriteJob& job) const {
  const Unit& unit = job.units[job.next];
  if (!services_.pause.is_on() || unit.from_master) return false;
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
    const bool was_there = group_.exists(key->first, key->second);
    const auto serve = [&](WriteJob& job, const contract::Block& block) {
      if (job.client->leaving) return BlockTable::Served::kNo;  // its unblock() is on its way
      if (!was_there && !block.for_removal) return BlockTable::Served::kNo;
      job.first_uncommitted = job.next;
      job.committed_mark = job.replies.bytes.size();
      group_.begin_turn();
      const Outcome outcome =
          group_.run(job, refusals(job), contract::Fed{key->second, block.memory});
      if (!std::holds_alternative<Done>(outcome)) {
        // Nothing is left of it: those behind need not try. (Unless it was gone from the start:
        // some wait for that, too.)
        const bool gone = was_there && !group_.exists(key->first, key->second);
        return gone ? BlockTable::Served::kStop : BlockTable::Served::kNo;
      }
      ++job.next;
      note_fed();
      return BlockTable::Served::kYes;
    };
    blocked_.offer(*key, serve,
                   [this](std::unique_ptr<WriteJob> job) { finished_.push_back(std::move(job)); });
  }
  count_blocked();
  group_.collect_touched(!blocked_.empty());
}

// How many replicas have what was committed when its unit ran.
void Writer::reply_acked(const Unit::AwaitedAcks& acks, contract::RespSink& reply) const {
  const size_t replicas = services_.replicas.count_acked(acks.offset, acks.on_disk);
  if (!acks.on_disk) return reply.integer(static_cast<int64_t>(replicas));
  contract::reply_synced(reply, acks.is_synced || syncer_.all_synced(), replicas);
}

// `error` empty: it is answered as one whose time is over.
void Writer::end_wait(std::unique_ptr<WriteJob> job, std::string_view error, bool failed) {
  Unit& unit = job->units[job->next++];
  count_ended_wait(services_, *unit.row, failed);
  job->first_uncommitted = job->next;
  contract::RespSink reply(job->replies, unit.resp);
  if (!unit.silent && !error.empty()) {
    reply.error(error);
  } else if (!unit.silent) {
    unit.waits_for_acks ? reply_acked(*unit.waits_for_acks, reply) : reply.null_array();
  }
  if (!error.empty()) services_.data.stats.count_error(error);
  job->committed_mark = job->replies.bytes.size();
  finished_.push_back(std::move(job));
  count_blocked();
  group_.collect_touched(!blocked_.empty());
}

void Writer::end_waits() {
  while (auto job = blocked_.take_due(services_.data.store.now_ms())) {
    end_wait(std::move(job), {}, /*failed=*/false);
  }
}

// What the last unit has asked for.
void Writer::end_unblocked() {
  for (const types::Effects::Unblocked& each : group_.take_unblocked()) {
    if (auto job = blocked_.take_client(each.client)) {
      end_wait(std::move(job), each.as_error ? "UNBLOCKED client unblocked via CLIENT UNBLOCK" : "",
               /*failed=*/true);
    }
  }
}

void Writer::end_left(uint64_t client) {
  const auto job = blocked_.take_client(client);
  if (job) count_ended_wait(services_, *job->units[job->next].row, /*failed=*/false);
}

void Writer::end_blocked(std::string_view error) {
  while (auto job = blocked_.take_any()) end_wait(std::move(job), error, /*failed=*/true);
  answer();
}

// What an answer waits for cannot come any more: whether its change is kept is up to another master
// now, or to replicas that come back to follow this one.
void Writer::change_stream() {
  for (HeldAnswer& held : std::exchange(held_answers_, {})) {
    release_answer(std::move(held), kTooFewAcks);
  }
  successors_.forget();
  answer();
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
    WriteJob* job = blocked_.find(number);
    if (job == nullptr) continue;  // it ran out of time, or its client has left
    if (item.sync_failed) {
      end_wait(blocked_.take(number),
               contract::write_error(services_.data.store.engine().trouble()), /*failed=*/true);
      continue;
    }
    job->units[job->next].waits_for_acks->is_synced = true;
  }
  end_ack_waits();
}

void Writer::note_ack() {
  if (!ack_noted_.exchange(true)) enqueue({.acked = true});
}

// After a commit: whoever waits for replicas to have what is committed. They are asked at once.
void Writer::want_acks() {
  if (want_acks_.empty()) return;
  bool asks = false;
  for (const BlockTable::Number number : std::exchange(want_acks_, {})) {
    WriteJob* job = blocked_.find(number);
    if (job == nullptr) continue;
    Unit::AwaitedAcks& acks = *job->units[job->next].waits_for_acks;
    acks.offset = services_.replicas.changed;
    asks = asks || services_.replicas.count_acked(acks.offset, acks.on_disk) < acks.replicas;
    ack_waits_.push_back(number);
  }
  end_ack_waits();
  if (asks) ask_for_acks();
}

void Writer::ask_for_acks() {
  if (services_.replicas.size() > 0) tell_replicas(std::string(kGetAck));
}

// What is to be acknowledged has to be told: also where nobody has asked to follow yet.
void Writer::need_stream() {
  data::ChangeStream& changes = services_.data.changes;
  const bool is_needed = services_.replicas.write_acks > 0 && !services_.following.writer;
  if (!is_needed || changes.on()) return;
  if (const storage::Status status = changes.turn_on(); !status.ok()) {
    metrics::log::warning("Changes are answered without write-acks, for they cannot be told: {}",
                          status.message());
  }
}

// Changes are not answered before so many replicas have them (write-acks).
void Writer::hold_for_acks() {
  const contract::Replicas& replicas = services_.replicas;
  if (replicas.write_acks == 0 && held_answers_.empty()) return;
  const uint64_t offset = replicas.told;
  const int64_t until_ms = services_.data.store.now_ms() + replicas.write_acks_ms;
  const auto told = std::stable_partition(finished_.begin(), finished_.end(),
                                          [](const auto& job) { return !job->told_from; });
  if (told == finished_.end()) return;
  for (auto at = told; at != finished_.end(); ++at) {
    held_answers_.push_back({.job = std::move(*at), .offset = offset, .until_ms = until_ms});
  }
  finished_.erase(told, finished_.end());
  end_ack_waits();
  if (!held_answers_.empty()) ask_for_acks();
}

int64_t Writer::next_held_answer_ms() const {
  return held_answers_.empty() ? std::numeric_limits<int64_t>::max()
                               : held_answers_.front().until_ms;
}

// A replica has acknowledged something, or the time of an answer that waits for that is over.
void Writer::end_ack_waits() {
  const contract::Replicas& replicas = services_.replicas;
  successors_.note_acks();
  std::erase_if(ack_waits_, [&](const BlockTable::Number number) {
    const WriteJob* job = blocked_.find(number);
    if (job == nullptr) return true;
    const Unit::AwaitedAcks& acks = *job->units[job->next].waits_for_acks;
    if (acks.for_sync && !acks.is_synced) return false;
    if (replicas.count_acked(acks.offset, acks.on_disk) < acks.replicas) return false;
    end_wait(blocked_.take(number), {}, /*failed=*/false);
    return true;
  });
  const int64_t now_ms = services_.data.store.now_ms();
  while (!held_answers_.empty()) {
    HeldAnswer& held = held_answers_.front();
    if (!successors_.all_have(held.offset, now_ms) && now_ms < held.until_ms) break;
    const bool acked = replicas.count_acked(held.offset) >= replicas.write_acks;
    if (acked) successors_.answered(held.offset);
    release_answer(std::move(held), acked ? std::string_view() : kTooFewAcks);
    held_answers_.pop_front();
  }
}

// An error takes the place of all that was answered since the job's first change.
void Writer::release_answer(HeldAnswer held, std::string_view error) {
  WriteJob& job = *held.job;
  if (!error.empty()) {
    job.first_uncommitted = job.told_from->unit;
    job.committed_mark = job.told_from->mark;
    replace_answers(job, error);
  }
  job.told_from.reset();  // or it would be held again
  finished_.push_back(std::move(held.job));
}

}  // namespace ingot::exec
