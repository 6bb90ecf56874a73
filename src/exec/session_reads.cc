// Reads: in memory on the I/O thread when that is possible, else in the pool; see session.h.
#include "src/exec/session.h"

#include "src/exec/accounting.h"
#include "src/exec/handlers.h"
#include "src/exec/prefetch.h"
#include "src/server/stats.h"

namespace ingot::exec {

using command::QueuedCommand;
using storage::Tier;

namespace {

// One lookup of one key needs no view to be of one state.
bool has_one_key(const command::CommandRow& row) {
  if (row.keys.size() != 1) return false;
  const command::KeySpec& spec = *row.keys.begin();
  return spec.keyword.empty() && spec.find == command::KeySpec::Find::kRange && spec.last == 0;
}

// What the pool runs for one command or one transaction of reads.
struct PoolRead {
  Services& services;
  std::vector<QueuedCommand> commands;
  const command::CommandRow* exec_row;  // null: a single command
  int db;
  int resp;
  bool silent;
  std::shared_ptr<const View> view;

  void run(command::EncodedReply* out) const {
    command::RespSink reply(*out, resp);
    if (exec_row != nullptr) {
      Accounting accounting(services, *exec_row);
      reply.array(commands.size());
      accounting.kept(reply, nullptr);
    }
    for (const QueuedCommand& queued : commands) run_one(queued, reply, out);
    if (silent) out->clear();
  }

  void run_one(const QueuedCommand& queued, command::RespSink& reply,
               command::EncodedReply* out) const {
    storage::EngineReader data(services.store.engine(), view->snapshot(), Tier::kDisk);
    types::KeyReader keys(data, view->databases(), view->created_ms(), &services.store.access());
    Accounting accounting(services, *queued.row);
    size_t mark = out->bytes.size();
    reply.clear_erred();
    run_read(services, *queued.row, queued.command->args, db, view, keys, reply);
    if (data.failed()) {
      out->truncate(mark);
      reply.error(storage_error(data.error()));
    }
    accounting.kept(reply, &keys);
  }
};

}  // namespace

Session::Step Session::read(const QueuedCommand& queued) {
  if (assembling_ || job_in_flight_) {
    prefetch_behind_write(queued);
    return Step::kWait;
  }
  if (reads_in_flight_ >= kReadsInFlightMax) return Step::kWait;
  if (!queued.row->scans && services_.store.can_probe() && probe(queued)) return Step::kTaken;
  read_in_pool(queued);
  return Step::kTaken;
}

bool Session::probe(const QueuedCommand& queued) {
  server::add(services_.stats.probes);
  bool answered = false;
  if (!run_view_ && has_one_key(*queued.row)) {
    storage::SingleProbe data(services_.store.engine(), &services_.store.cache());
    answered = try_read(queued, data, *databases_.map, nullptr);
    if (!answered && data.missed() && !data.needs_snapshot()) {
      run_view_ = services_.store.view();
      return false;
    }
  }
  if (!answered) {
    if (!run_view_) run_view_ = services_.store.view();
    storage::EngineReader data(services_.store.engine(), run_view_->snapshot(), Tier::kCacheOnly);
    answered = try_read(queued, data, run_view_->databases(), run_view_);
  }
  if (answered) server::add(services_.stats.probe_hits);
  return answered;
}

bool Session::try_read(const QueuedCommand& queued, storage::Reader& data,
                       const types::DatabaseMap& databases, std::shared_ptr<const View> view) {
  Accounting accounting(services_, *queued.row);
  types::KeyReader keys(data, databases, now_ms_, &services_.store.access());
  scratch_.clear();
  command::RespSink reply(scratch_, client_->resp);
  bool latest = view == nullptr;
  run_read(services_, *queued.row, queued.command->args, client_->db, std::move(view), keys,
           reply);
  if (data.failed()) return false;
  // A flush or a swap in between: the lookup may have mixed two states.
  if (latest && !services_.store.databases_still(databases_.version)) return false;
  accounting.kept(reply, &keys);
  if (!silent()) answer(std::move(scratch_));
  return true;
}

void Session::read_in_pool(const QueuedCommand& queued) {
  if (!run_view_) run_view_ = services_.store.view();
  ++reads_in_flight_;
  auto run = [self = shared_from_this(), slot = open_slot(),
              read = PoolRead{.services = services_,
                              .commands = {queued},
                              .exec_row = nullptr,
                              .db = client_->db,
                              .resp = client_->resp,
                              .silent = silent(),
                              .view = run_view_}]() mutable {
    read.run(&slot->reply);
    read.view.reset();
    net::IoThread& thread = self->thread_;
    thread.post([self = std::move(self), slot = std::move(slot)]() mutable {
      self->on_read_done(std::move(slot));
    });
  };
  std::vector<std::string> cold;
  if (!queued.row->scans && !has_one_key(*queued.row)) {
    add_cold_keys(services_, *queued.row, queued.command->args,
                  run_view_->databases()[static_cast<size_t>(client_->db.load())], &cold);
  }
  if (cold.size() < 2) {
    tasks_.emplace_back(std::move(run));
    return;
  }
  // Several cold keys of one command are read at the same time; then the command runs.
  prefetch(services_, std::move(cold), std::move(run));
}

void Session::read_transaction(std::vector<QueuedCommand> transaction,
                               const command::CommandRow& exec_row) {
  ++reads_in_flight_;
  tasks_.emplace_back(
      [self = shared_from_this(), slot = open_slot(),
       read = PoolRead{.services = services_,
                       .commands = std::move(transaction),
                       .exec_row = &exec_row,
                       .db = client_->db,
                       .resp = client_->resp,
                       .silent = silent(),
                       .view = services_.store.view()}]() mutable {
        read.run(&slot->reply);
        read.view.reset();
        net::IoThread& thread = self->thread_;
        thread.post([self = std::move(self), slot = std::move(slot)]() mutable {
          self->on_read_done(std::move(slot));
        });
      });
}

}  // namespace ingot::exec
