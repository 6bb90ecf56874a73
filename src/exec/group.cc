// Running and committing a group; see group.h.
#include "src/exec/group.h"

#include <algorithm>

#include "src/command/table.h"
#include "src/exec/accounting.h"
#include "src/exec/collector.h"
#include "src/exec/handlers.h"
#include "src/exec/store.h"
#include "src/server/stats.h"

namespace ingot::exec {

using command::CommandRow;
using command::RespSink;
using storage::Space;
using storage::Status;
using storage::Tier;

namespace {

constexpr int kTriesBeforeDisk = 2;

const std::string* refusal_for(const CommandRow& row, const Group::Refusals& refusals) {
  if ((row.flags & command::flag::kWrite) == 0) return nullptr;
  if (!refusals.all.empty()) return &refusals.all;
  if ((row.flags & command::flag::kDenyOom) != 0 && !refusals.growing.empty()) {
    return &refusals.growing;
  }
  return nullptr;
}

Earlier earlier_runs(const WriteJob& job, const Unit& unit, size_t index) {
  return {.prepared = index < unit.prepared.size() ? unit.prepared[index] : nullptr,
          .in_place = job.tries >= kTriesBeforeDisk + static_cast<int>(unit.transaction.size()),
          .may_block = unit.transaction.empty(),
          .fed = {}};
}

}  // namespace

void restore_database(const WriteJob& job, const Unit& unit) {
  bool selects = std::ranges::any_of(unit.transaction, [](const command::QueuedCommand& queued) {
    return command::is_session(*queued.row);
  });
  if (selects) job.client->db = unit.db;
}

Group::Group(Services& services)
    : services_(services),
      overlay_(services.store.engine(), nullptr, services.store.probe_tier(),
               &services.store.cache()),
      state_(services.store.initial_state()),
      batch_(services.store.engine().new_batch()) {}

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

types::KeyWriter Group::key_writer(types::AccessClock* access) {
  types::KeyWriter keys(overlay_, state_, services_.store.ids(), effects_, services_.store.now_ms(),
                        access, collect_touched_ || !watches_.empty());
  keys.want_events(wanted_events_);
  return keys;
}

Group::Outcome Group::run(WriteJob& job, const Refusals& refusals,
                          std::optional<command::Fed> fed) {
  Unit& unit = job.units[job.next];
  if (unit.row == nullptr) {
    job.replies.bytes.append(unit.canned);
    return Outcome::kDone;
  }
  // Whoever is fed now is served now: those who wait behind must not overtake.
  bool patient = fed || job.tries >= kTriesBeforeDisk;
  overlay_.set_tier(patient ? Tier::kDisk : services_.store.probe_tier());
  if (patient && !fed) server::add(services_.stats.writer_disk_reads);
  overlay_.reset_outcome();
  work_ = nullptr;
  work_index_ = 0;
  block_.reset();

  Savepoint before = savepoint();
  size_t mark = job.replies.bytes.size();
  types::KeyWriter keys = key_writer(&services_.store.access());
  command::EncodedReply dropped;
  RespSink reply(unit.silent ? dropped : job.replies, unit.resp);
  if (unit.transaction.empty() && !std::holds_alternative<command::Control>(unit.row->handler)) {
    run_command(job, unit, refusals, fed, keys, reply);
  } else {
    run_transaction(job, unit, refusals, keys, reply);
  }
  if (overlay_.missed() || work_) {
    rollback(before);
    job.replies.truncate(mark);
    return work_ && !overlay_.missed() ? Outcome::kNeedsWork : Outcome::kNeedsDisk;
  }
  if (overlay_.failed()) {
    rollback(before);
    job.replies.truncate(mark);
    reply.error(storage_error(overlay_.error()));
    overlay_.reset_outcome();
    return Outcome::kDone;
  }
  keep(job, keys, before);
  return block_ ? Outcome::kBlocks : Outcome::kDone;
}

void Group::run_command(WriteJob& job, Unit& unit, const Refusals& refusals,
                        std::optional<command::Fed> fed, types::KeyWriter& keys, RespSink& reply) {
  if (const std::string* refusal = refusal_for(*unit.row, refusals)) {
    count_rejected(services_, unit.row, *refusal);
    reply.error(*refusal);
    return;
  }
  Savepoint before = savepoint();
  Accounting accounting(services_, *unit.row);
  Earlier earlier = earlier_runs(job, unit, 0);
  earlier.fed = fed;
  Wish wish =
      run_write(services_, *unit.row, *unit.command, unit.db, *job.client, earlier, keys, reply);
  work_ = std::move(wish.work);
  block_ = std::move(wish.block);
  if (overlay_.failed() || work_ || block_) return;
  if (reply.undoes()) rollback(before);
  accounting.kept(reply, &keys);
}

void Group::run_transaction(WriteJob& job, Unit& unit, const Refusals& refusals,
                            types::KeyWriter& keys, RespSink& reply) {
  Accounting accounting(services_, *unit.row);
  bool broken = watches_.broken(job.client->id, keys);
  effects_.unwatch = true;
  if (broken) {
    reply.null_array();
    accounting.kept(reply, nullptr);
    return;
  }
  for (const command::QueuedCommand& queued : unit.transaction) {
    if (const std::string* refusal = refusal_for(*queued.row, refusals)) {
      reply.error("EXECABORT Transaction discarded because of: " + *refusal);
      accounting.kept(reply, nullptr);
      return;
    }
  }
  reply.array(unit.transaction.size());
  int db = unit.db;
  restore_database(job, unit);
  for (size_t i = 0; i < unit.transaction.size(); ++i) {
    const command::QueuedCommand& queued = unit.transaction[i];
    Savepoint before = savepoint();
    keys.hits = keys.misses = 0;
    keys.missed.clear();
    Accounting each(services_, *queued.row);
    work_ = run_any(services_, queued, &db, *job.client, earlier_runs(job, unit, i), keys, reply);
    work_index_ = i;
    if (overlay_.failed() || work_) return;
    if (reply.undoes()) rollback(before);
    each.kept(reply, &keys);
    reply.clear_erred();
  }
  accounting.kept(reply, nullptr);
}

// The unit stays: what it did to WATCH takes effect now, for the units behind it.
void Group::keep(WriteJob& job, types::KeyWriter& keys, const Savepoint& before) {
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
    watches_.watch(job.client->id, watched.db, watched.key, watched.expired);
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
  return key_writer(nullptr).stored_in(state_.databases[static_cast<size_t>(db)], key);
}

bool Group::expire(size_t limit, bool may_read_disk) {
  overlay_.set_tier(may_read_disk ? Tier::kDisk : services_.store.probe_tier());
  overlay_.reset_outcome();
  Savepoint before = savepoint();
  types::KeyWriter keys = key_writer(nullptr);
  auto progress = keys.expire_due(limit);
  if (overlay_.failed()) {
    bool missed = overlay_.missed();
    rollback(before);
    overlay_.reset_outcome();
    return !missed;
  }
  state_.expiry_low_water_ms = progress.low_water_ms;
  state_.next_due_ms = progress.next_due_ms;
  if (!watches_.empty()) {
    types::Effects since;
    since.touched.assign(effects_.touched.begin() + static_cast<long>(before.effects.touched),
                         effects_.touched.end());
    watches_.apply(since, keys);
  }
  return true;
}

void Group::put_counts() {
  std::string record;
  for (const auto& change : state_.count_changes) {
    storage::encode_counts(state_.counts[change.keyspace], &record);
    overlay_.put(Space::kSystem, storage::counts_key(change.keyspace), record);
  }
}

Status Group::write(storage::Durability durability) {
  put_counts();
  batch_->clear();
  overlay_.write_to(batch_.get());
  auto write = [&] {
    overlay_.begin_cache_changes();
    Status status = services_.store.engine().write(*batch_, durability);
    overlay_.end_cache_changes(status.ok());
    return status;
  };
  if (state_.databases_before.empty()) return write();
  return services_.store.publish_databases(state_.databases, write);
}

Status Group::commit(storage::Durability durability) {
  Status status = empty() ? Status() : write(durability);
  if (status.ok()) {
    release();
  } else {
    state_.rollback({.count_changes = 0, .databases_before = 0, .orders = 0});
  }
  taken_ = {};
  overlay_.clear();
  state_.end_group();
  effects_ = {};
  return status;
}

void Group::release() {
  server::Stats& stats = services_.stats;
  if (effects_.expired_keys != 0) server::add(stats.expired_keys, effects_.expired_keys);
  if (effects_.lookup_hits != 0) server::add(stats.keyspace_hits, effects_.lookup_hits);
  if (effects_.lookup_misses != 0) server::add(stats.keyspace_misses, effects_.lookup_misses);
  if (effects_.changes != 0) server::add(stats.changes_since_save, effects_.changes);
  if (!effects_.dropped_collections.empty() || !effects_.dropped_keyspaces.empty()) {
    services_.collector.dropped(effects_.dropped_collections, effects_.dropped_keyspaces);
  }
  if (!effects_.events.empty()) services_.on_events(effects_.events);
}

}  // namespace ingot::exec
