// Running units under savepoints, and what the server changes by itself.
#include "src/exec/group.h"

#include <algorithm>

#include "src/contract/errors.h"
#include "src/contract/table.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/group_calls.h"
#include "src/metrics/log.h"
#include "src/metrics/stats.h"
#include "storage/no_wait_reads.h"

namespace ingot::exec {

using contract::CommandRow;
using contract::RespSink;
using storage::Status;
using storage::Tier;

namespace {

constexpr int kTriesBeforeDisk = 2;
// The second one has the keys for itself; only what no key tells can spoil it.
constexpr int kTriesInPool = 2;

}  // namespace

const std::string* refusal_for(const CommandRow& row, const Group::Refusals& refusals) {
  if ((row.flags & contract::flag::kWrite) == 0) return nullptr;
  if (!refusals.all.empty()) return &refusals.all;
  if ((row.flags & contract::flag::kDenyOom) != 0 && !refusals.growing.empty()) {
    return &refusals.growing;
  }
  return nullptr;
}

const PoolOutcome& pool_outcome(const Unit& unit, uint64_t place) {
  static const PoolOutcome none;
  const auto found = unit.from_pool.find(place);
  return found == unit.from_pool.end() ? none : found->second;
}

// What a master sends has been served there.
static bool is_blocking_of_master(const Unit& unit) {
  return unit.from_master && (unit.row->flags & contract::flag::kBlocking) != 0;
}

Earlier earlier_runs(const Unit& unit, uint64_t place) {
  const PoolOutcome& outcome = pool_outcome(unit, place);
  return {.result = outcome.result,
          .is_dry = false,
          .in_place = outcome.tries >= kTriesInPool,
          .may_block = unit.transaction.empty() && !is_blocking_of_master(unit),
          .fed = {},
          .went_on = unit.went_on};
}

Group::Group(Services& services, Settling& settling)
    : services_(services),
      settling_(settling),
      overlay_(services.data.store.engine(), nullptr, services.data.store.probe_tier(),
               &services.data.store.cache(), &services.data.store.order_counts()),
      state_(services.data.store.initial_state()),
      begin_(state_.savepoint()),
      batch_(services.data.store.engine().new_batch()) {}

Group::Savepoint Group::savepoint() const {
  return {.overlay = overlay_.savepoint(),
          .state = state_.savepoint(),
          .effects = effects_.savepoint()};
}

void Group::rollback(const Savepoint& savepoint) {
  overlay_.rollback(savepoint.overlay);
  state_.rollback(savepoint.state);
  effects_.rollback(savepoint.effects);
}

types::KeyWriter Group::key_writer(int64_t now_ms, types::AccessClock* access, uint64_t author) {
  types::KeyWriter keys(overlay_, state_, services_.data.store.ids(), effects_, now_ms, access,
                        collect_touched_ || !watches_.empty());
  keys.want_events(services_.couriers.event_kinds());
  if (tells_changes_) keys.tell_changes(author);
  keys.tell_replicas(services_.data.changes.on() && !services_.following.writer);
  keys.allow_overwrites(settling_.allowed());
  // What runs in a pause of changes makes none.
  const bool keeps = services_.following.writer && services_.following.read_only;
  keys.keep_expired(keeps || services_.pause.is_on());
  return keys;
}

void Group::look_at_clocks() {
  if (std::exchange(just_looked_, false)) return;
  const auto now = Accounting::Clock::now();
  time_ = {.now = now, .ms_since = now, .ms = services_.data.store.now_ms()};
}

void Group::ended(const Accounting& accounting) {
  if (!accounting.ended()) return;
  just_looked_ = true;
  time_.now = *accounting.ended();
  if (time_.now - time_.ms_since < std::chrono::milliseconds(1)) return;
  time_.ms_since = time_.now;
  time_.ms = services_.data.store.now_ms();
}

types::KeyWriter Group::replaying_writer() {
  return {overlay_, state_, services_.data.store.ids(), effects_, time_.ms, nullptr, false};
}

// Whether it is what the master has told behind all that is here. Not so if something before it
// could not be applied: the link begins anew from there.
bool Group::is_next(const FromMaster& unit) {
  if (unit.link != services_.following.link.load(std::memory_order_relaxed)) return false;
  return unit.begin == services_.data.changes.offset() + followed_bytes_;
}

bool Group::is_refused(const Unit& unit, const Refusals& refusals) const {
  if (unit.row != nullptr && refusal_for(*unit.row, refusals) != nullptr) return true;
  return std::ranges::any_of(unit.transaction, [&](const contract::QueuedCommand& queued) {
    return refusal_for(*queued.row, refusals) != nullptr;
  });
}

// The unit has taken effect, or has failed as it did there.
void Group::follow(const Unit& unit) {
  const FromMaster& master = *unit.from_master;
  size_t at = 0;
  for (const FromMaster::Long& each : master.longs) {
    effects_.told.pass_on(std::string_view(master.bytes).substr(at, each.at - at), {},
                          each.word.source);
    at = each.at;
  }
  tell_replicas(std::string_view(master.bytes).substr(at), master.db);
  followed_bytes_ += master.end - master.begin;
}

Outcome Group::run(WriteJob& job, const Refusals& refusals, std::optional<contract::Fed> fed) {
  const Unit& unit = job.units[job.next];
  if (unit.from_master && (!is_next(*unit.from_master) || is_refused(unit, refusals))) {
    return Done{};
  }
  if (unit.row == nullptr) {
    const bool may_remove = !services_.pause.is_on() && !services_.following.writer;
    if (refusals.all.empty() && may_remove) remove_expired(unit.expired);
    job.replies.bytes.append(unit.canned);
    just_looked_ = false;
    if (unit.from_master) follow(unit);
    return Done{};
  }
  // Whoever is fed now is served now: those who wait behind must not overtake.
  const bool patient = fed || job.tries >= kTriesBeforeDisk;
  overlay_.set_tier(patient ? Tier::kDisk : services_.data.store.probe_tier());
  if (patient && !fed) metrics::add(services_.data.stats.writer_disk_reads);
  overlay_.reset_outcome();

  look_at_clocks();
  const Savepoint before = savepoint();
  const size_t mark = job.replies.bytes.size();
  types::KeyWriter keys =
      unit.replayed ? replaying_writer()
                    : key_writer(time_.ms, &services_.data.store.access(), job.client->id);
  contract::EncodedReply dropped;
  // What has happened elsewhere happens here, too.
  const bool is_bounded = !unit.happened_elsewhere();
  WriterSink reply(unit.silent ? dropped : job.replies, unit.resp,
                   is_bounded ? services_.data.bounds.transaction_bytes.load() : UINT64_MAX,
                   overlay_);
  if (unit.happened_elsewhere()) {
    keys.never_expire();
    keys.keep_expired(false);
  }
  const bool is_exec = std::holds_alternative<contract::Control>(unit.row->handler);
  // From the page cache the writer reads by itself.
  storage::NoWaitReads reads = std::exchange(job.reads, {});
  std::optional<storage::NoWaitReads::Scope> scope;
  if (!patient) scope.emplace(&reads);
  Outcome outcome = is_exec ? run_transaction(job, refusals, keys, reply)
                            : run_command(job, refusals, fed, keys, reply);
  scope.reset();
  const bool misses_levels = state_.orders.take_missed();
  if (overlay_.missed()) outcome = NeedsDisk{.of_levels = misses_levels};
  if (std::holds_alternative<NeedsDisk>(outcome)) job.reads = std::move(reads);
  if (std::holds_alternative<NeedsDisk>(outcome) || std::holds_alternative<NeedsPool>(outcome)) {
    rollback(before);
    job.replies.truncate(mark);
    return outcome;
  }
  const bool too_large = std::holds_alternative<TooLarge>(outcome) || reply.too_large();
  if (overlay_.failed() || too_large) {
    rollback(before);
    job.replies.truncate(mark);
    reply.error(!too_large ? contract::storage_error(overlay_.error())
                : is_exec  ? contract::kTransactionTooLarge
                           : contract::kOutOfMemory);
    overlay_.reset_outcome();
    restore_client(services_, job, unit);
    if (is_exec) watches_.unwatch(job.client->id);
    return Done{};
  }
  keep(job, keys, before);
  if (unit.from_master) follow(unit);
  return outcome;
}

void log_master_error(const contract::ReplySink& reply, const CommandRow& row) {
  if (!reply.erred()) return;
  metrics::log::warning(
      "== CRITICAL == This replica is sending an error to its master: '{}' after processing the "
      "command '{}'",
      reply.last_error(), row.name);
}

// In the order of the changes around it, so that it is known which of them it has seen; behind
// those of its own.
void Group::remember_reads(const CommandRow& row, contract::Args args,
                           const contract::Client& client) {
  if ((row.flags & contract::flag::kReadonly) != 0) remember_keys(row, args, client);
}

void Group::remember_keys(const CommandRow& row, contract::Args args,
                          const contract::Client& client) {
  for (const contract::KeyAt& at : contract::keys_of(row, args)) {
    effects_.notices.tell(types::KeyRead{
        .key = std::string(args[at.index]), .client = client.id, .thread = client.thread_index});
  }
}

Wish Group::run_with_calls(WriteJob& job, const Refusals& refusals, size_t index, const Call& call,
                           Earlier earlier, types::KeyWriter& keys, RespSink& reply) {
  GroupCalls calls(*this, services_, job, index, call, refusals, keys);
  earlier.caller = &calls;
  Wish wish = run_any(services_, call, *job.client, earlier, keys, reply);
  return wish.work ? std::move(wish) : calls.take_wish();
}

// What the pool could not make because storage failed, the command cannot either.
bool Group::latch_failure(const PoolOutcome& outcome) {
  if (outcome.status.ok()) return false;
  overlay_.latch_error(outcome.status);
  return true;
}

Outcome Group::run_command(WriteJob& job, const Refusals& refusals,
                           std::optional<contract::Fed> fed, types::KeyWriter& keys,
                           RespSink& reply) {
  const Unit& unit = job.units[job.next];
  if (const std::string* refusal = refusal_for(*unit.row, refusals)) {
    count_rejected(services_, unit.row, *refusal);
    reply.error(*refusal);
    return Done{};
  }
  if (latch_failure(pool_outcome(unit, 0))) return Done{};
  const bool is_counted = unit.counted == last_place_in_unit(0);
  Accounting accounting(services_, {.row = *unit.row,
                                    .command = *unit.command,
                                    .client = *job.client,
                                    .waits_since = unit.waits_since,
                                    .begins = time_.now,
                                    .db = unit.db,
                                    .is_shown = fed || is_counted,
                                    .is_counted = is_counted,
                                    .notices = effects_.notices});
  if (unit.row->runs_script) accounting.show();
  keys.mark_access(marks_access(*job.client, *unit.row));
  const Savepoint before = savepoint();
  Earlier earlier = earlier_runs(unit, 0);
  earlier.fed = fed;
  earlier.in_place = earlier.in_place || fed;  // it is served now
  const Call call = {
      .row = *unit.row, .command = *unit.command, .db = unit.db, .client_id = job.client->id};
  Wish wish = unit.row->runs_script
                  ? run_with_calls(job, refusals, 0, call, std::move(earlier), keys, reply)
                  : run_write(services_, call, earlier, keys, reply);
  if (wish.work) {
    return NeedsPool{
        .work = std::move(wish.work), .place = wish.place, .holds = std::move(wish.holds)};
  }
  if (overlay_.failed()) return Done{};
  if (reply.undoes()) rollback(before);
  if (unit.remembers_reads) remember_reads(*unit.row, unit.command->args, *job.client);
  if (wish.block) {
    accounting.waits(keys);
    return Waits{.block = std::move(*wish.block)};
  }
  if (!wish.goes_on.empty()) return GoesOn{.memory = std::move(wish.goes_on)};
  accounting.kept(reply, &keys);
  ended(accounting);
  if (unit.from_master) log_master_error(reply, *unit.row);
  return Done{};
}

// The unit stays: what it did to WATCH takes effect now, for the units behind it.
void Group::keep(WriteJob& job, types::KeyWriter& keys, const Savepoint& before) {
  if (effects_.notices.list.size() > before.effects.notices.count) job.told_others = true;
  // What is told and changes nothing (PUBLISH) need not be acknowledged.
  const bool changes = overlay_.savepoint() > before.overlay ||
                       state_.databases_before.size() > before.state.databases_before;
  const bool tells = effects_.told.savepoint().commands > before.effects.told.commands;
  if (tells && !changes && services_.data.changes.is_untouched()) {
    effects_.told.rollback(before.effects.told);  // so that Sentinel's messages do not end that
  }
  if (!job.told_from && changes && tells) {
    job.told_from = {.unit = job.first_uncommitted, .mark = job.committed_mark};
  }
  effects_.told.end_unit();
  overlay_.set_tier(Tier::kDisk);
  if (!watches_.empty()) {
    types::Effects since;
    since.touched.assign(effects_.touched.begin() + static_cast<long>(before.effects.touched),
                         effects_.touched.end());
    since.swapped.assign(effects_.swapped.begin() + static_cast<long>(before.effects.swapped),
                         effects_.swapped.end());
    watches_.apply(since, keys);
  }
  if (effects_.unwatch) watches_.unwatch(job.client->id);
  effects_.unwatch = false;
  for (const auto& watched : effects_.watched) {
    if (job.client->closed) break;  // its unwatch() may have come by already
    watches_.watch(job.client, watched.db, watched.key, watched.expired);
  }
  effects_.watched.clear();
}

types::Effects Group::take_touched() {
  types::Effects since;
  since.touched.assign(effects_.touched.begin() + static_cast<long>(taken_.touched),
                       effects_.touched.end());
  since.swapped.assign(effects_.swapped.begin() + static_cast<long>(taken_.swapped),
                       effects_.swapped.end());
  taken_ = effects_.savepoint();
  return since;
}

bool Group::exists(int db, std::string_view key) {
  overlay_.set_tier(Tier::kDisk);
  overlay_.reset_outcome();
  return key_writer(services_.data.store.now_ms())
      .stored_in(state_.databases[static_cast<size_t>(db)], key);
}

// What memory cannot tell of is left to the expiry index.
void Group::remove_expired(const std::vector<types::KeyReader::KeyName>& names) {
  if (names.empty()) return;
  overlay_.set_tier(services_.data.store.probe_tier());
  overlay_.reset_outcome();
  const Savepoint begin = savepoint();
  types::KeyWriter keys = key_writer(services_.data.store.now_ms());
  for (const auto& [db, key] : names) {
    const Savepoint before = savepoint();
    types::Record record;
    (void)keys.peek(db, key, &record);
    if (!overlay_.failed()) continue;
    rollback(before);
    overlay_.reset_outcome();
  }
  effects_.told.end_unit();
  if (!watches_.empty()) watches_.apply(touched_since(begin), keys);
}

types::Effects Group::touched_since(const Savepoint& before) const {
  types::Effects since;
  since.touched.assign(effects_.touched.begin() + static_cast<long>(before.effects.touched),
                       effects_.touched.end());
  since.swapped.assign(effects_.swapped.begin() + static_cast<long>(before.effects.swapped),
                       effects_.swapped.end());
  return since;
}

bool Group::expire(size_t limit, bool may_read_disk) {
  overlay_.set_tier(may_read_disk ? Tier::kDisk : services_.data.store.probe_tier());
  overlay_.reset_outcome();
  Savepoint before = savepoint();
  const int64_t now_ms = services_.data.store.now_ms();
  services_.data.store.note_expiry(now_ms);
  types::KeyWriter keys = key_writer(now_ms);
  auto progress = keys.expire_due(limit, state_.expiry_low_water);
  if (overlay_.failed()) {
    bool missed = overlay_.missed();
    rollback(before);
    overlay_.reset_outcome();
    return !missed;
  }
  state_.set_expiry_low_water(std::move(progress.low_water));
  state_.next_due_ms = progress.next_due_ms;
  effects_.told.separate(before.effects.told);
  if (!watches_.empty()) watches_.apply(touched_since(before), keys);
  return true;
}

Status Group::change(const std::function<void(types::KeyWriter&)>& make) {
  overlay_.set_tier(Tier::kDisk);
  overlay_.reset_outcome();
  const Savepoint before = savepoint();
  types::KeyWriter keys = key_writer(services_.data.store.now_ms());
  make(keys);
  if (overlay_.failed()) {
    Status status = overlay_.error();
    rollback(before);
    overlay_.reset_outcome();
    return status;
  }
  if (!watches_.empty()) watches_.apply(touched_since(before), keys);
  return {};
}

void Group::settle(const OverwrittenBatch& batch) {
  overlay_.reset_outcome();
  types::KeyWriter keys = key_writer(services_.data.store.now_ms());
  const bool counted = settling_.take(batch);
  if (batch.failed) return;
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    keys.settle(batch.keys[i], batch.old[i], batch.begun_ms, counted);
    const storage::KeyspaceId keyspace = batch.keys[i].keyspace;
    if (counted && (settled_.empty() || settled_.back() != keyspace)) settled_.push_back(keyspace);
  }
}

void Group::settle(const Recount& recount) {
  if (!settling_.take(recount)) return;
  key_writer(services_.data.store.now_ms())
      .correct_counts(recount.keyspace, recount.noted, recount.found);
  settled_.push_back(recount.keyspace);
}

void Group::begin_recount() {
  settling_.recount(state_);
}

}  // namespace ingot::exec
