// A map under a lock: clients come and go far less often than commands do.
#include "src/contract/client_registry.h"

#include <utility>

namespace ingot::contract {

void ClientRegistry::add(std::shared_ptr<contract::Client> client) {
  std::lock_guard lock(mutex_);
  const uint64_t id = client->id;
  clients_.emplace(id, std::move(client));
}

void ClientRegistry::remove(uint64_t id) {
  // Destroyed after the lock is released: what it holds may be large.
  std::shared_ptr<contract::Client> gone;
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  gone = std::move(found->second);
  clients_.erase(found);
  gone->connection = nullptr;
  gone->kill = nullptr;
}

size_t ClientRegistry::size() const {
  std::lock_guard lock(mutex_);
  return clients_.size();
}

void ClientRegistry::for_each(const Visit& each) const {
  // In portions, so that others who want the lock wait for few clients and not for all.
  constexpr int kPortion = 128;
  uint64_t last_id = 0;
  for (bool more = true; more;) {
    std::lock_guard lock(mutex_);
    auto at = clients_.upper_bound(last_id);
    for (int i = 0; i < kPortion && at != clients_.end(); ++i, ++at) {
      last_id = at->first;
      each(*at->second);
    }
    more = at != clients_.end();
  }
}

std::shared_ptr<Client> ClientRegistry::find(uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second;
}

void ClientRegistry::visit(uint64_t id, const Visit& visit) const {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  if (found != clients_.end()) visit(*found->second);
}

}  // namespace ingot::contract
