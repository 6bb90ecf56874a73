// Reads: in memory on the I/O thread when that is possible, else in the pool.
#include "src/exec/session.h"

#include "src/contract/errors.h"
#include "src/exec/accounting.h"
#include "src/exec/handlers.h"
#include "src/exec/prefetch.h"
#include "src/metrics/stats.h"

namespace ingot::exec {

using contract::QueuedCommand;
using storage::Tier;

namespace {

// One lookup of one key needs no view to be of one state.
bool has_one_key(const contract::CommandRow& row) {
  if (row.keys.size() != 1) return false;
  const contract::KeySpec& spec = *row.keys.begin();
  return spec.keyword.empty() && spec.find == contract::KeySpec::Find::kRange && spec.last == 0;
}

// What the pool runs for one command or one transaction of reads.
struct PoolRead {
  Services& services;
  std::vector<QueuedCommand> commands;
  const contract::CommandRow* exec_row;  // null: a single command
  int db;
  int resp;
  bool silent;
  std::shared_ptr<const data::View> view;

  void run(contract::EncodedReply* out) const {
    contract::RespSink reply(*out, resp);
    if (exec_row != nullptr) {
      Accounting accounting(services, *exec_row);
      reply.array(commands.size());
      accounting.kept(reply, nullptr);
    }
    for (const QueuedCommand& queued : commands) {
      run_one(queued, reply, out);
      if (exec_row == nullptr || out->bytes.size() <= services.data.bounds.transaction_bytes) {
        continue;
      }
      out->clear();
      reply.error(contract::kTransactionTooLarge);
      break;
    }
    if (silent) out->clear();
  }

  void run_one(const QueuedCommand& queued, contract::RespSink& reply,
               contract::EncodedReply* out) const {
    storage::EngineReader data(services.data.store.engine(), view->snapshot(), Tier::kDisk);
    types::KeyReader keys(data, view->databases(), view->created_ms(),
                          &services.data.store.access());
    Accounting accounting(services, *queued.row);
    size_t mark = out->bytes.size();
    reply.clear_erred();
    run_read(services, {.row = *queued.row, .command = *queued.command, .db = db}, view, keys,
             reply);
    if (data.failed()) {
      out->truncate(mark);
      reply.error(contract::storage_error(data.error()));
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
  if (!queued.row->scans && services_.data.store.can_probe() && probe(queued)) return Step::kTaken;
  read_in_pool(queued);
  return Step::kTaken;
}

bool Session::probe(const QueuedCommand& queued) {
  metrics::add(services_.data.stats.probes);
  bool answered = false;
  if (!run_view_ && has_one_key(*queued.row)) {
    storage::SingleProbe data(services_.data.store.engine(), &services_.data.store.cache());
    answered = try_read(queued, data, *databases_.map, nullptr);
    if (!answered && data.missed() && !data.needs_snapshot()) {
      run_view_ = services_.data.store.view();
      return false;
    }
  }
  if (!answered) {
    if (!run_view_) run_view_ = services_.data.store.view();
    storage::EngineReader data(services_.data.store.engine(), run_view_->snapshot(),
                               Tier::kCacheOnly);
    answered = try_read(queued, data, run_view_->databases(), run_view_);
  }
  if (answered) metrics::add(services_.data.stats.probe_hits);
  return answered;
}

bool Session::try_read(const QueuedCommand& queued, storage::Reader& data,
                       const types::DatabaseMap& databases,
                       std::shared_ptr<const data::View> view) {
  Accounting accounting(services_, *queued.row);
  types::KeyReader keys(data, databases, now_ms_, &services_.data.store.access());
  scratch_.clear();
  contract::RespSink reply(scratch_, client_->resp);
  bool latest = view == nullptr;
  run_read(services_, {.row = *queued.row, .command = *queued.command, .db = client_->db},
           std::move(view), keys, reply);
  if (data.failed()) return false;
  // A flush or a swap in between: the lookup may have mixed two states.
  if (latest && !services_.data.store.databases_still(databases_.version)) return false;
  accounting.kept(reply, &keys);
  if (!silent()) answer(std::move(scratch_));
  return true;
}

void Session::read_in_pool(const QueuedCommand& queued) {
  if (!run_view_) run_view_ = services_.data.store.view();
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
                               const contract::CommandRow& exec_row) {
  ++reads_in_flight_;
  tasks_.emplace_back([self = shared_from_this(), slot = open_slot(),
                       read = PoolRead{.services = services_,
                                       .commands = std::move(transaction),
                                       .exec_row = &exec_row,
                                       .db = client_->db,
                                       .resp = client_->resp,
                                       .silent = silent(),
                                       .view = services_.data.store.view()}]() mutable {
    read.run(&slot->reply);
    read.view.reset();
    net::IoThread& thread = self->thread_;
    thread.post([self = std::move(self), slot = std::move(slot)]() mutable {
      self->on_read_done(std::move(slot));
    });
  });
}

}  // namespace ingot::exec
