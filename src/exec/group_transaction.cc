// The commands of an EXEC, and what of them lasts when their unit is undone.
#include <algorithm>

#include "src/contract/errors.h"
#include "src/data/store.h"
#include "src/exec/group.h"

namespace ingot::exec {

using contract::QueuedCommand;

namespace {

// It has session commands.
bool has_client_to_itself(const Unit& unit) {
  return std::ranges::any_of(unit.transaction, [](const QueuedCommand& queued) {
    return contract::is_session(*queued.row);
  });
}

// Changes only what its client hears of, which is taken back before the unit runs again.
bool changes_hearing(const contract::CommandRow& row) {
  return row.pushes || row.name == "tracking" || row.name == "caching";
}

}  // namespace

struct Group::TransactionRun {
  WriteJob& job;
  const Refusals& refusals;
  types::KeyWriter& keys;
  WriterSink& reply;  // its commands may turn the client's replies on and off
  const bool has_client;
  const size_t changed_before;
  const size_t answered_before;
  int db;

  Unit& unit() const { return job.units[job.next]; }
};

void restore_client(Services& services, const WriteJob& job, const Unit& unit) {
  if (!unit.exec_client) return;
  unit.exec_client->before.restore(*job.client);
  unit.exec_client->hearing.restore(*job.client, services.channels, services.tracking);
}

// Its commands begin with the client as EXEC found it.
void Group::take_client(const WriteJob& job, Unit& unit) {
  if (unit.exec_client) {
    restore_client(services_, job, unit);
    unit.permission.account = job.client->account();
    return;
  }
  const bool listens = std::ranges::any_of(
      unit.transaction, [](const QueuedCommand& queued) { return queued.row->pushes; });
  unit.exec_client =
      std::make_unique<ExecClient>(*job.client, listens ? &services_.channels : nullptr,
                                   services_.tracking, services_.clients.newest_id());
}

Outcome Group::run_transaction(WriteJob& job, const Refusals& refusals, types::KeyWriter& keys,
                               WriterSink& reply) {
  Unit& unit = job.units[job.next];
  Accounting accounting(services_, {.row = *unit.row,
                                    .command = *unit.command,
                                    .client = *job.client,
                                    .db = unit.db,
                                    .notices = effects_.notices});
  const bool has_client = has_client_to_itself(unit);
  if (has_client) take_client(job, unit);
  const bool broken = watches_.broken(job.client->id, keys);
  effects_.unwatch = true;
  if (broken) {
    reply.null_array();
    accounting.kept(reply, nullptr);
    return Done{};
  }
  for (const QueuedCommand& queued : unit.transaction) {
    if (const std::string* refusal = refusal_for(*queued.row, refusals)) {
      reply.error("EXECABORT Transaction discarded because of: " + *refusal);
      accounting.kept(reply, nullptr);
      return Done{};
    }
  }
  WriterSink own_reply(job.replies, unit.resp, reply.bytes_max(), overlay_);
  TransactionRun run{.job = job,
                     .refusals = refusals,
                     .keys = keys,
                     .reply = has_client ? own_reply : reply,
                     .has_client = has_client,
                     .changed_before = overlay_.bytes() + effects_.told.bytes(),
                     .answered_before = job.replies.bytes.size(),
                     .db = unit.db};
  reply.array(unit.transaction.size());
  for (size_t i = 0; i < unit.transaction.size(); ++i) {
    if (auto outcome = run_queued(run, i)) return std::move(*outcome);
  }
  accounting.moved(run.db);
  accounting.kept(reply, nullptr);
  return Done{};
}

// Nothing: the next one's turn.
std::optional<Outcome> Group::run_queued(TransactionRun& run, size_t index) {
  WriteJob& job = run.job;
  Unit& unit = run.unit();
  const QueuedCommand& queued = unit.transaction[index];
  const size_t mark = job.replies.bytes.size();
  const auto keep_silent = [&] {
    const bool silent = run.has_client && contract::is_silent(job.client->reply_mode);
    if (silent && !queued.row->pushes) job.replies.truncate(mark);
  };
  const std::string denied = unit.permission.check(services_, job.client->id, index, queued);
  if (!denied.empty()) {
    run.reply.error(denied);
    run.reply.clear_erred();
    keep_silent();
    return {};
  }
  const uint64_t place = place_in_unit(index);
  if (latch_failure(pool_outcome(unit, place))) return Done{};
  run.keys.hits = run.keys.misses = 0;
  run.keys.missed.clear();
  run.keys.mark_access(marks_access(*job.client, *queued.row));
  Accounting each(services_, {.row = *queued.row,
                              .command = *queued.command,
                              .client = *job.client,
                              .db = run.db,
                              .is_counted = last_place_in_unit(index) <= unit.counted,
                              .notices = effects_.notices});
  if (queued.row->runs_script) each.show();
  const Savepoint before = savepoint();
  Wish wish = run_handler(run, index);
  if (wish.work) {
    return NeedsPool{.work = std::move(wish.work),
                     .place = std::max(place, wish.place),
                     .holds = std::move(wish.holds)};
  }
  if (run.reply.too_large()) return TooLarge{};
  if (overlay_.failed()) return Done{};
  if (contract::is_session(*queued.row)) {
    run.db = job.client->db;
    unit.permission.account = job.client->account();
    run.keys.want_events(services_.couriers.event_kinds());  // as it may have asked for
    each.moved(run.db);
  }
  if (run.reply.undoes()) rollback(before);
  const bool remembers =
      run.has_client ? contract::remembers_reads(job.client->tracking) : unit.remembers_reads;
  if (remembers) remember_reads(*queued.row, queued.command->args, *job.client);
  each.kept(run.reply, &run.keys);
  unit.counted = std::max(unit.counted, last_place_in_unit(index));
  if (unit.from_master) log_master_error(run.reply, *queued.row);
  run.reply.clear_erred();
  keep_silent();
  const bool is_large =
      overlay_.bytes() + effects_.told.bytes() - run.changed_before >
          services_.data.bounds.changes_bytes ||
      job.replies.bytes.size() - run.answered_before > services_.data.bounds.transaction_bytes;
  if (is_large && !unit.happened_elsewhere()) return TooLarge{};
  return {};
}

// Of a session command that has run before it is repeated what it answered, and what its client was
// then; whatever else it did is done.
Wish Group::run_handler(TransactionRun& run, size_t index) {
  WriteJob& job = run.job;
  Unit& unit = run.unit();
  const QueuedCommand& queued = unit.transaction[index];
  Call call = {
      .row = *queued.row, .command = *queued.command, .db = run.db, .client_id = job.client->id};
  if (unit.exec_client) call.newest_client = unit.exec_client->newest_client;
  Earlier earlier = earlier_runs(unit, place_in_unit(index));
  if (queued.row->runs_script) {
    return run_with_calls(job, run.refusals, index, call, std::move(earlier), run.keys, run.reply);
  }
  const bool lasts = contract::is_session(*queued.row) && !changes_hearing(*queued.row);
  if (!lasts) return run_any(services_, call, *job.client, earlier, run.keys, run.reply);
  auto& ran = unit.exec_client->ran;
  if (const auto found = ran.find(index); found != ran.end()) {
    job.replies.bytes += found->second.reply;
    found->second.after.restore(*job.client);
    run.reply.set_version(job.client->resp);
    return {};
  }
  const size_t mark = job.replies.bytes.size();
  Wish wish = run_any(services_, call, *job.client, earlier, run.keys, run.reply);
  ran.emplace(index, ExecClient::Ran{.reply = job.replies.bytes.substr(mark),
                                     .after = ClientState(*job.client)});
  return wish;
}

}  // namespace ingot::exec
