// A transaction: what is queued between MULTI and EXEC, and EXEC.
#include <algorithm>

#include "src/contract/errors.h"
#include "src/exec/session.h"

namespace ingot::exec {

using contract::QueuedCommand;

namespace {

// What a queued command costs beside its arguments.
constexpr size_t kQueuedBytes = 256;

}  // namespace

// As in Redis, nothing more is kept of a transaction that has failed.
void Session::enqueue_in_multi(QueuedCommand queued) {
  if (!client_->multi_failed) {
    if (client_->queue.empty()) queued_bytes_ = 0;
    size_t bytes = kQueuedBytes;
    for (const std::string_view arg : queued.command->args)
      bytes += arg.size() + sizeof(std::string_view);
    if (!connection_->may_hold_input(queued_bytes_ + bytes)) {
      client_->queue.clear();
      return reject(queued.row, contract::kOutOfMemory);
    }
    queued_bytes_ += bytes;
    // The whole batch would stay for its sake.
    if (queued.batch->bytes() > 2 * bytes * queued.batch->commands.size()) {
      queued.batch = net::copy_of(*queued.command);
      queued.command = queued.batch->commands.data();
    }
    client_->queue.push_back(std::move(queued));
    client_->queued.store(static_cast<int>(client_->queue.size()), std::memory_order_relaxed);
  }
  contract::EncodedReply reply;
  contract::RespSink(reply, client_->resp).simple("QUEUED");
  if (!silent()) answer(std::move(reply));
}

void Session::close_transaction() {
  client_->in_multi = false;
  client_->multi_failed = client_->unwatched = false;
  client_->queue.clear();
  client_->queued.store(-1, std::memory_order_relaxed);
}

void Session::discard_transaction() {
  close_transaction();
  if (watching_) writer_.unwatch(client_->id);
  watching_ = false;
}

Session::Step Session::exec(const QueuedCommand& queued) {
  std::string_view error;
  if (!client_->in_multi) {
    error = "ERR EXEC without MULTI";
  } else if (client_->multi_failed) {
    error = "EXECABORT Transaction discarded because of previous errors.";
  }
  if (!error.empty()) {
    if (client_->in_multi && watching_ && !idle()) return Step::kWait;  // WATCH first, then unwatch
    answer_at_once(queued, error);
    if (client_->in_multi) discard_transaction();
    return Step::kTaken;
  }
  if (client_->unwatched) {
    if (watching_ && !idle()) return Step::kWait;
    contract::EncodedReply reply;
    contract::RespSink(reply, client_->resp).null_array();
    if (!silent()) answer(std::move(reply));
    discard_transaction();
    return Step::kTaken;
  }
  bool all_reads = true;
  bool has_client = false;
  for (const QueuedCommand& each : client_->queue) {
    all_reads = all_reads && contract::is_read(*each.row);
    has_client = has_client || contract::is_session(*each.row) || each.row->alone;
  }
  if (all_reads && !watching_) {
    if (assembling_ || job_in_flight_ || !may_read(client_->queue.size())) return Step::kWait;
    pending_bytes_ += queued_bytes_;
    TransactionPermission permission = transaction_permission();
    read_transaction(std::move(client_->queue), std::move(permission), queued);
    discard_transaction();
    return Step::kTaken;
  }
  Unit unit{.row = queued.row,
            .batch = queued.batch,
            .command = queued.command,
            .db = client_->db,
            .resp = client_->resp,
            .remembers_reads = contract::remembers_reads(client_->tracking),
            .silent = silent(),
            .transaction = client_->queue,
            .permission = transaction_permission()};
  if (queue_write(std::move(unit)) == Step::kWait) return Step::kWait;
  pending_bytes_ += queued_bytes_;
  watching_ = false;  // the writer forgets them
  exclusive_ = has_client;
  if (!exclusive_) close_transaction();
  return Step::kTaken;
}

}  // namespace ingot::exec
