// Cutting the stream into units, and the queue in front of the writer.
#include "src/replication/stream_applier.h"

#include <chrono>
#include <utility>

#include "src/contract/args.h"
#include "src/contract/table.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/at_once.h"
#include "src/exec/client_pause.h"
#include "src/exec/handlers.h"
#include "src/exec/prefetch.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/script/scripts.h"

namespace ingot::replication {

using contract::CommandRow;
using contract::equals_ignore_case;
using exec::Unit;

namespace {

// What may wait behind the job at the writer; beyond it the master's socket is left unread.
constexpr size_t kWaitingBytesMax = 4 << 20;
constexpr size_t kWaitingUnitsMax = 16384;

}  // namespace

StreamApplier::StreamApplier(exec::Services& services, exec::Writer& writer,
                             std::shared_ptr<contract::Client> client, const Begin& begin,
                             std::function<void()> wants_ack)
    : services_(services),
      writer_(writer),
      client_(std::move(client)),
      wants_ack_(std::move(wants_ack)),
      link_(begin.link),
      unit_bytes_max_(exec::UnitCutter::kTransactionShare * services.data.bounds.transaction_bytes),
      cutter_(services, client_->account(), begin.db),
      unit_begin_(begin.offset),
      taken_(begin.offset),
      applied_(begin.offset) {}

bool StreamApplier::take(const net::BatchPtr& batch, uint64_t end) {
  Units units;
  for (const net::Command& command : batch->commands) {
    note_bytes(command);
    if (!take_command(batch, command, &units)) return false;
  }
  if (cutter_.in_multi() && bytes_.size() > unit_bytes_max_) {
    metrics::log::warning("The master's transaction is larger than memory allows");
    return false;
  }
  // Else places mean something else to the master than here.
  if (gathered_offset() != end) return false;
  if (!cutter_.in_multi() && !bytes_.empty()) add_unit({}, &units);
  fetch_ahead(units);
  size_t more = 0;
  for (const Unit& unit : units) more += unit.from_master->bytes.size();
  std::unique_ptr<exec::WriteJob> job;
  {
    std::lock_guard lock(mutex_);
    taken_ = end;
    std::ranges::move(units, std::back_inserter(waiting_));
    waiting_bytes_ += more;
    job = next_job();
  }
  if (job) writer_.submit(std::move(job));
  return true;
}

// As it came: a master sends nothing but arrays of bulk strings.
void StreamApplier::note_bytes(const net::Command& command) {
  const auto head = [this](char mark, uint64_t number) {
    bytes_ += mark;
    bytes_ += std::to_string(number);
    bytes_ += "\r\n";
  };
  head('*', command.args.size());
  for (size_t i = 0; i < command.args.size(); ++i) {
    if (command.sink == nullptr || i != command.diverted_index) {
      head('$', command.args[i].size());
      bytes_ += command.args[i];
    } else {
      const types::LongWord word = exec::long_word(command);
      head('$', word.bytes);
      longs_.push_back({.at = bytes_.size(), .word = word});
      long_bytes_ += word.bytes;
    }
    bytes_ += "\r\n";
  }
}

bool StreamApplier::take_command(const net::BatchPtr& batch, const net::Command& command,
                                 Units* units) {
  const contract::Args args = command.args;
  if (equals_ignore_case(args[0], "ping")) return true;
  if (equals_ignore_case(args[0], "replconf")) {
    if (args.size() < 2 || !equals_ignore_case(args[1], "getack")) return true;
    std::lock_guard lock(mutex_);
    std::string itself;
    types::append_command(&itself, args);
    ack_at_ = ack_sync_at_ = gathered_offset() - itself.size();
    return true;
  }
  if (equals_ignore_case(args[0], "script")) {
    take_script(args);
    return true;
  }
  using Step = exec::UnitCutter::Step;
  const Step step = cutter_.take(batch, command);
  switch (step) {
    case Step::kUnit:
      add_unit(cutter_.unit(), units);
      return true;
    case Step::kNoDatabase:
      metrics::log::warning("The master's stream cannot be followed: {}", cutter_.error());
      return false;
    case Step::kMisplaced:
      return false;
    case Step::kUnknown:
    case Step::kUntold:
      metrics::log::warning(
          "== CRITICAL == The master has sent a command that means nothing here, '{}': {}",
          args[0].substr(0, 64),
          step == Step::kUnknown ? cutter_.error() : "not a master's to send");
      return true;
    case Step::kNone:
      return true;
  }
  return true;
}

// Which masters before Redis 7 tell. A script is known at once, to what comes behind it and to
// clients when this server leads; SCRIPT FLUSH would be too early for what is not yet applied.
void StreamApplier::take_script(contract::Args args) {
  if (args.size() != 3 || !equals_ignore_case(args[1], "load")) return;
  std::string sha;
  const std::string error = services_.scripts.keep(args[2], &sha);
  if (!error.empty()) metrics::log::warning("A script of the master is not kept: {}", error);
}

void StreamApplier::add_unit(Unit unit, Units* units) {
  unit.silent = true;
  const uint64_t end = gathered_offset();
  unit.from_master =
      std::make_unique<exec::FromMaster>(exec::FromMaster{.link = link_,
                                                          .begin = std::exchange(unit_begin_, end),
                                                          .end = end,
                                                          .bytes = std::exchange(bytes_, {}),
                                                          .longs = std::exchange(longs_, {}),
                                                          .db = cutter_.db()});
  long_bytes_ = 0;
  units->push_back(std::move(unit));
}

// Those of the first job are fetched by the writer, all at once, when it misses one of them.
void StreamApplier::fetch_ahead(const Units& units) {
  {
    std::lock_guard lock(mutex_);
    if (!in_flight_) return;
  }
  const auto databases = services_.data.store.databases().map;
  std::vector<std::string> cold;
  const auto add = [&](const CommandRow& row, const net::Command& command, int db) {
    const auto keyspace = (*databases)[static_cast<size_t>(db)];
    if (exec::may_leave_unread(row, command.args)) return;
    exec::add_cold_keys(services_, row, command.args, keyspace, &cold);
  };
  for (const Unit& unit : units) {
    if (unit.row != nullptr && unit.transaction.empty()) add(*unit.row, *unit.command, unit.db);
    for (const auto& queued : unit.transaction) add(*queued.row, *queued.command, unit.db);
  }
  exec::prefetch(services_, std::move(cold), [] {});
}

std::unique_ptr<exec::WriteJob> StreamApplier::next_job() {
  if (in_flight_ || failed_ || ended_ || waiting_.empty() || rests()) return nullptr;
  in_flight_ = true;
  auto job = std::make_unique<exec::WriteJob>();
  job->client = client_;
  job->thread = &exec::at_once();
  job->units = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  job->done = [self = shared_from_this(), end = job->units.back().from_master->end](
                  const contract::EncodedReply&, bool) { self->on_job_done(end); };
  changed_.notify_all();
  return job;
}

// CLIENT PAUSE here: nothing changes until it ends.
bool StreamApplier::rests() {
  if (pause_ticket_ == 0 && services_.pause.is_on()) {
    pause_ticket_ = services_.pause.wait([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->go_on();
    });
  }
  return pause_ticket_ != 0;
}

void StreamApplier::go_on() {
  std::unique_ptr<exec::WriteJob> job;
  {
    std::lock_guard lock(mutex_);
    pause_ticket_ = 0;
    job = next_job();
  }
  if (job) writer_.submit(std::move(job));
}

void StreamApplier::on_job_done(uint64_t end) {
  std::unique_ptr<exec::WriteJob> job;
  bool wants_ack = false;
  {
    std::lock_guard lock(mutex_);
    in_flight_ = false;
    applied_ = services_.data.changes.place().offset;
    failed_ = failed_ || applied_ != end;
    wants_ack = failed_ || (ack_at_ && *ack_at_ <= applied_);
    job = next_job();
    changed_.notify_all();
  }
  if (job) writer_.submit(std::move(job));
  if (wants_ack) wants_ack_();
  await_sync();
}

// One at a time.
void StreamApplier::await_sync() {
  uint64_t offset = 0;
  {
    std::lock_guard lock(mutex_);
    if (awaits_sync_ || ended_ || applied_ == synced_) return;
    awaits_sync_ = true;
    offset = applied_;
  }
  writer_.after_sync([self = weak_from_this(), offset](bool synced) {
    if (const auto alive = self.lock()) alive->on_sync(offset, synced);
  });
}

void StreamApplier::on_sync(uint64_t offset, bool synced) {
  bool wants_ack = false;
  {
    std::lock_guard lock(mutex_);
    awaits_sync_ = false;
    if (!synced) return;
    synced_ = offset;
    wants_ack = ack_sync_at_ && *ack_sync_at_ <= synced_;
  }
  if (wants_ack) wants_ack_();
  await_sync();
}

bool StreamApplier::wait_for_room(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] {
    return failed_ || (waiting_bytes_ < kWaitingBytesMax && waiting_.size() < kWaitingUnitsMax);
  });
}

uint64_t StreamApplier::taken_offset() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

uint64_t StreamApplier::applied_offset() const {
  std::lock_guard lock(mutex_);
  return applied_;
}

bool StreamApplier::has_failed() const {
  std::lock_guard lock(mutex_);
  return failed_;
}

uint64_t StreamApplier::synced_offset() const {
  std::lock_guard lock(mutex_);
  return synced_;
}

bool StreamApplier::take_ack_wish() {
  std::lock_guard lock(mutex_);
  const bool is_applied = ack_at_ && *ack_at_ <= applied_;
  const bool is_synced = ack_sync_at_ && *ack_sync_at_ <= synced_;
  if (is_applied) ack_at_.reset();
  if (is_synced) ack_sync_at_.reset();
  return is_applied || is_synced;
}

void StreamApplier::end() {
  std::unique_lock lock(mutex_);
  ended_ = true;
  waiting_.clear();
  if (pause_ticket_ != 0) services_.pause.forget(pause_ticket_);
  changed_.wait(lock, [this] { return !in_flight_; });
}

}  // namespace ingot::replication
