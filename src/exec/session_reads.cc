// Reads: in memory on the I/O thread when that is possible, else in the pool.
#include "src/exec/session.h"

#include "src/contract/errors.h"
#include "src/contract/thresholds.h"
#include "src/exec/accounting.h"
#include "src/exec/following.h"
#include "src/exec/prefetch.h"
#include "src/exec/script_calls.h"
#include "src/metrics/stats.h"
#include "src/script/scripts.h"
#include "storage/check.h"

#include <algorithm>
#include <limits>

namespace ingot::exec {

using contract::QueuedCommand;
using storage::Tier;
using Turn = data::ReaderPool::Turn;

// What the pool runs for one command or one transaction of reads.
struct Session::PoolRead {
  std::shared_ptr<Session> session;
  SlotPtr slot;
  std::vector<QueuedCommand> commands;
  std::optional<QueuedCommand> exec;      // nothing: a single command
  TransactionPermission permission = {};  // of it
  std::shared_ptr<const data::View> view;
  // As they were when its turn came, for all its commands and however late they run.
  std::shared_ptr<const script::Libraries> libraries = libraries_for_scripts();
  int db = session->client_->db;
  int resp = session->client_->resp;
  bool silent = session->silent();
  uint64_t walk_max = contract::kWalkedAtOnce;
  unsigned runs = 0;
  bool walked = false;  // over elements, before it missed one
  size_t next = 0;      // of the commands
  // When that one was first looked at, which found something missing.
  Accounting::Clock::time_point waits_since = Accounting::Clock::now();

  bool runs_scripts() const {
    return std::ranges::any_of(commands,
                               [](const auto& queued) { return queued.row->runs_script; });
  }
  std::shared_ptr<const script::Libraries> libraries_for_scripts() const {
    return runs_scripts() ? session->services_.scripts.libraries() : nullptr;
  }

  // False when it has to run again, where there is more time or its bytes have come: from `next`,
  // behind what it has answered.
  bool run() {
    contract::EncodedReply* out = &slot->reply;
    contract::RespSink reply(*out, resp);
    if (exec && runs == 0) reply.array(commands.size());
    ++runs;
    for (; next < commands.size(); ++next) {
      if (!run_one(commands[next], reply, out)) return false;
      if (exec) reply.clear_erred();  // it has been counted, and EXEC itself did not fail
      waits_since = Accounting::Clock::now();
      if (!exec || out->bytes.size() <= session->services_.data.bounds.transaction_bytes) {
        continue;
      }
      out->clear();
      reply.error(contract::kTransactionTooLarge);
      break;
    }
    if (exec) {
      Accounting accounting(session->services_, {.row = *exec->row,
                                                 .command = *exec->command,
                                                 .client = *session->client_,
                                                 .db = db,
                                                 .notices = slot->notices});
      accounting.kept(reply, nullptr);
    }
    if (silent) out->clear();
    return true;
  }

  bool run_one(const QueuedCommand& queued, contract::RespSink& reply,
               contract::EncodedReply* out) {
    Services& services = session->services_;
    if (exec) {
      const std::string denied = permission.check(services, session->client_->id, next, queued);
      if (!denied.empty()) {
        reply.error(denied);
        return true;
      }
    }
    const bool waits = storage::NoWaitReads::current() == nullptr;
    storage::HotRecords hot = view->hot_records();
    hot.from_disk = true;
    storage::EngineReader data(services.data.store.engine(), view->snapshot(),
                               waits ? Tier::kDisk : Tier::kCacheOnly, storage::CacheUse::kFill,
                               hot);
    data.stop_when([&client = *session->client_] { return client.gone.load(); });
    data.set_walk_max(walk_max);
    types::KeyReader keys(data, view->databases(), view->created_ms(),
                          &services.data.store.access());
    keys.mark_access(marks_access(*session->client_, *queued.row));
    Accounting accounting(services, {.row = *queued.row,
                                     .command = *queued.command,
                                     .client = *session->client_,
                                     .waits_since = waits_since,
                                     .db = db,
                                     .notices = slot->notices});
    if (queued.row->runs_script) accounting.show();
    const size_t mark = out->bytes.size();
    const types::Notices::Savepoint told = slot->notices.savepoint();
    reply.clear_erred();
    std::optional<ReadCalls> calls;
    if (queued.row->runs_script) {
      calls.emplace(
          services,
          ScriptCalls::Sender{.client = *session->client_, .account = permission.account, .db = db},
          keys, slot->notices);
    }
    run_read(services,
             {.row = *queued.row,
              .command = *queued.command,
              .db = db,
              .client_id = session->client_->id},
             view, keys, reply, calls ? &*calls : nullptr, libraries);
    if (data.failed()) out->truncate(mark);
    walked = data.has_walked();
    if (data.missed()) {
      slot->notices.rollback(told);
      return false;
    }
    if (data.failed() && session->client_->gone) return true;
    if (data.failed()) reply.error(contract::storage_error(data.error()));
    accounting.kept(reply, &keys);
    services.couriers.release_too_many(slot->notices);
    std::ranges::move(keys.expired_keys, std::back_inserter(slot->expired));
    return true;
  }
};

Session::Step Session::read(const QueuedCommand& queued) {
  if (client_->gone) return Step::kTaken;  // nobody would have the answer
  if (assembling_ || job_in_flight_) {
    prefetch_behind_write(queued);
    return Step::kWait;
  }
  if (queued.row->after_reads ? reads_in_flight_ > 0 : !may_read(1)) return Step::kWait;
  if (client_->tracking != 0) remember_reads(queued);
  const bool is_short =
      !queued.row->scans && queued.command->args.size() <= contract::kArgumentsOnIoThread;
  if (is_short && probe(queued)) return Step::kTaken;
  read_in_pool(queued);
  return Step::kTaken;
}

bool Session::may_read(size_t commands) const {
  if (reads_in_flight_ == 0) return true;
  if (reads_in_flight_ >= kReadsInFlightMax) return false;
  const uint64_t owed = output_bytes() + (commands_in_flight_ + commands) * reply_bytes_expected_;
  if (owed <= kReplyBytesFirst) return true;
  // All connections together may owe a part of what replies may take.
  const uint64_t share = std::clamp<uint64_t>(
      services_.data.bounds.command_bytes / std::max<size_t>(1, services_.clients.size()),
      kReplyBytesFirst, net::kOutputPauseBytes);
  return owed <= share;
}

Session::SlotPtr Session::open_read(size_t commands) {
  ++reads_in_flight_;
  commands_in_flight_ += commands;
  SlotPtr slot = open_slot();
  slot->reads = commands;
  return slot;
}

void Session::note_read(const Slot& slot) {
  --reads_in_flight_;
  commands_in_flight_ -= slot.reads;
  const size_t bytes = slot.reply.bytes.size() / std::max<size_t>(1, slot.reads);
  reply_bytes_expected_ = std::max(bytes, reply_bytes_expected_ - reply_bytes_expected_ / 8);
}

// Before it reads, and at a state from then on: whatever changes a key after that is told. Of what
// might have written, as SORT, Redis remembers nothing.
void Session::remember_reads(const QueuedCommand& queued) {
  if (!contract::remembers_reads(client_->tracking)) return;
  const bool reads = (queued.row->flags & contract::flag::kReadonly) != 0;
  if (!reads && !queued.row->runs_script) return;
  Courier& courier = services_.couriers.of(thread_);
  const contract::Args args = queued.command->args;
  for (const contract::KeyAt& at : contract::keys_of(*queued.row, args)) {
    courier.remember_read(args[at.index], client_->id);
  }
  run_view_.reset();
}

// What is not in the cache may be in the page cache; what is in neither, probed_ wants.
bool Session::probe(const QueuedCommand& queued) {
  metrics::add(services_.data.stats.probes);
  probed_ = storage::NoWaitReads(contract::kPageCacheReadsOnIoThread);
  const storage::NoWaitReads::Scope scope(&probed_);
  bool answered = false;
  // Lookups of one key need no view to be of one state.
  if (!run_view_ && contract::has_one_key(*queued.row) && databases_.settled()) {
    data::Store& store = services_.data.store;
    storage::KeyProbe data(store.engine(), &store.cache(), &store.images(), &store.order_counts());
    answered = try_read(queued, data, *databases_.map, nullptr, &data);
    if (!answered && data.missed() && !data.needs_snapshot()) {
      run_view_ = services_.data.store.view();
      return false;
    }
  }
  if (!answered) {
    if (!run_view_) run_view_ = services_.data.store.view();
    storage::EngineReader data(services_.data.store.engine(), run_view_->snapshot(),
                               Tier::kCacheOnly, storage::CacheUse::kFill,
                               run_view_->hot_records());
    answered = try_read(queued, data, run_view_->databases(), run_view_, nullptr);
  }
  if (answered) metrics::add(services_.data.stats.probe_hits);
  return answered;
}

bool Session::try_read(const QueuedCommand& queued, storage::Reader& data,
                       const types::DatabaseMap& databases, std::shared_ptr<const data::View> view,
                       storage::KeyProbe* probe) {
  types::Notices notices;
  Accounting accounting(services_, {.row = *queued.row,
                                    .command = *queued.command,
                                    .client = *client_,
                                    .db = client_->db,
                                    .notices = notices});
  // As what reads at the same view in the pool has it.
  const int64_t now_ms = view ? view->created_ms() : now_ms_;
  types::KeyReader keys(data, databases, now_ms, &services_.data.store.access());
  keys.mark_access(marks_access(*client_, *queued.row));
  scratch_.clear();
  contract::RespSink reply(scratch_, client_->resp);
  bool latest = view == nullptr;
  run_read(
      services_,
      {.row = *queued.row, .command = *queued.command, .db = client_->db, .client_id = client_->id},
      std::move(view), keys, reply);
  if (data.failed() || (probe != nullptr && !probe->confirm())) return false;
  // A flush or a swap in between: the lookup may have mixed two states.
  if (latest && !services_.data.store.databases_still(databases_.version)) return false;
  if (const int64_t until = services_.data.store.expired_until_ms();
      latest && until > now_ms && until <= services_.data.store.now_ms()) {
    return false;
  }
  accounting.kept(reply, &keys);
  if (!silent()) answer(std::move(scratch_));
  tell(std::move(notices));
  remove_expired(std::move(keys.expired_keys));
  return true;
}

// As in Redis, who reads a key that has expired removes it: whatever comes next on this connection
// finds it gone and counted. (Others do when the expiry index says so, at about the same time.) Of
// a replica the master does.
void Session::remove_expired(std::vector<types::KeyReader::KeyName> names) {
  if (names.empty() || exclusive_ || blocking_ || closing_) return;
  if (services_.following.asked.load(std::memory_order_relaxed)) return;
  Unit unit;
  unit.silent = true;  // no command waits for a reply of it
  unit.expired = std::move(names);
  (void)queue_write(std::move(unit));
}

void Session::read_in_pool(const QueuedCommand& queued) {
  storage::NoWaitReads reads = std::exchange(probed_, {});
  if (!run_view_) run_view_ = services_.data.store.view();
  PoolRead read{.session = shared_from_this(),
                .slot = open_read(1),
                .commands = {queued},
                .exec = std::nullopt,
                .permission = permission_of_script(*queued.row),
                .view = run_view_};
  if (queued.row->runs_script) return gather_script(std::move(read));
  if (queued.command->args.size() > contract::kWalkedAtOnce) {
    return services_.data.readers.submit(
        [read = std::move(read)]() mutable { run_in_pool(std::move(read)); }, data::Work::kLong);
  }
  std::vector<std::string> cold;
  if (!queued.row->scans && !contract::has_one_key(*queued.row)) {
    add_cold_keys(services_, *queued.row, queued.command->args,
                  run_view_->databases()[static_cast<size_t>(client_->db.load())], &cold);
  }
  if (cold.size() < 2) {
    lookups_.push_back({.work = look_up(std::move(read)), .reads = std::move(reads)});
    return;
  }
  // Several cold keys of one command are read at the same time; then the command runs.
  prefetch(services_, std::move(cold),
           [&readers = services_.data.readers, read = std::move(read)]() mutable {
             readers.look_up({.work = look_up(std::move(read)), .reads = {}});
           });
}

void Session::read_transaction(std::vector<QueuedCommand> transaction,
                               TransactionPermission permission, const QueuedCommand& exec) {
  if (client_->gone) return;
  if (client_->tracking != 0) {
    for (const QueuedCommand& queued : transaction) remember_reads(queued);
  }
  run_view_ = services_.data.store.view();  // what stands behind it reads nothing older
  PoolRead read{.session = shared_from_this(),
                .slot = open_read(transaction.size()),
                .commands = std::move(transaction),
                .exec = exec,
                .permission = std::move(permission),
                .view = run_view_};
  if (read.runs_scripts()) return run_long(std::move(read));
  lookups_.push_back({.work = look_up(std::move(read)), .reads = {}});
}

// Where reads do not wait the command runs once for each that it needs. One that walks, draws, or
// needs many is better off where they do.
storage::ReadRing::Work Session::look_up(PoolRead read) {
  return [read = std::move(read)]() mutable {
    const storage::NoWaitReads* const reads = storage::NoWaitReads::current();
    if (reads == nullptr) {
      run_in_pool(std::move(read));
      return true;
    }
    if (read.run()) {
      finish(std::move(read));
      return true;
    }
    if (reads->wants() && !read.walked && read.runs < contract::kLookupRuns) return false;
    read.session->services_.data.readers.submit(
        [read = std::move(read)]() mutable { run_in_pool(std::move(read)); });
    return true;
  };
}

void Session::run_in_pool(PoolRead read) {
  if (read.run()) return finish(std::move(read));
  run_long(std::move(read));
}

void Session::run_long(PoolRead read) {
  read.walk_max = std::numeric_limits<uint64_t>::max();
  data::ReaderPool& readers = read.session->services_.data.readers;
  if (read.runs_scripts()) {
    return readers.submit_script([read = std::move(read)](Turn turn) mutable {
      turn == Turn::kRun ? run_in_pool(std::move(read)) : give_up(std::move(read));
    });
  }
  readers.submit([read = std::move(read)]() mutable { run_in_pool(std::move(read)); },
                 data::Work::kLong);
}

void Session::gather_script(PoolRead read) {
  if (scripts_ == nullptr) scripts_ = std::make_shared<std::vector<PoolRead>>();
  scripts_->push_back(std::move(read));
  if (scripts_->size() == kScriptsAtOnce) submit_scripts();
}

void Session::submit_scripts() {
  if (scripts_ == nullptr) return;
  services_.data.readers.submit_script([reads = std::exchange(scripts_, nullptr)](Turn turn) {
    if (turn == Turn::kRun) return run_scripts(*reads);
    for (PoolRead& read : *reads) give_up(std::move(read));
  });
}

// For as long as busy-reply-threshold no script has ended that would have left it a place.
void Session::give_up(PoolRead read) {
  INGOT_CHECK(read.runs == 0);
  const contract::CommandRow& row = read.exec ? *read.exec->row : *read.commands.front().row;
  const std::string_view error = read.session->services_.scripts.busy_in_pool();
  contract::RespSink(read.slot->reply, read.resp)
      .error(rejection(read.session->services_, &row, error));
  if (read.silent) read.slot->reply.clear();
  finish(std::move(read));
}

void Session::run_scripts(std::vector<PoolRead>& reads) {
  const std::shared_ptr<Session> session = reads.front().session;
  const auto turn_ends = Accounting::Clock::now() + kScriptsTurn;
  std::vector<SlotPtr> done;
  for (PoolRead& read : reads) {
    read.walk_max = std::numeric_limits<uint64_t>::max();
    if (Accounting::Clock::now() > turn_ends || !read.run()) {
      run_long(std::move(read));
      continue;
    }
    done.push_back(std::move(read.slot));
    read.view.reset();
  }
  if (done.empty()) return;
  session->services_.data.readers.post(
      session->thread_, [session, done = std::move(done)] { session->on_reads_done(done); });
}

void Session::finish(PoolRead read) {
  read.view.reset();
  Session& its = *read.session;
  its.services_.data.readers.post(
      its.thread_, [session = std::move(read.session), slot = std::move(read.slot)]() mutable {
        session->on_read_done(std::move(slot));
      });
}

}  // namespace ingot::exec
