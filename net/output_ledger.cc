// The bound on all clients' unsent replies together.
#include "net/output_ledger.h"

#include "net/connection_impl.h"

namespace ingot::net {

void OutputLedger::add(ConnectionImpl& connection) {
  const std::lock_guard lock(mutex_);
  debtors_.emplace(&connection, false);
}

void OutputLedger::remove(ConnectionImpl& connection) {
  const std::lock_guard lock(mutex_);
  debtors_.erase(&connection);
}

void OutputLedger::enforce(uint64_t excess) {
  const std::lock_guard lock(mutex_);
  uint64_t freed = 0;
  for (const auto& [connection, cut] : debtors_) {
    if (cut) freed += connection->output_bytes.load(std::memory_order_relaxed);
  }
  while (freed < excess) {
    auto worst = debtors_.end();
    uint64_t most = 0;
    for (auto it = debtors_.begin(); it != debtors_.end(); ++it) {
      const uint64_t bytes = it->first->output_bytes.load(std::memory_order_relaxed);
      if (!it->second && bytes > most) {
        worst = it;
        most = bytes;
      }
    }
    if (worst == debtors_.end()) return;  // they were paid meanwhile
    worst->second = true;
    worst->first->cut_from_any_thread();
    freed += most;
  }
}

}  // namespace ingot::net
