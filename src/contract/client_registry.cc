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
  std::lock_guard lock(mutex_);
  for (const auto& [id, client] : clients_) each(*client);
}

void ClientRegistry::visit(uint64_t id, const Visit& visit) const {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  if (found != clients_.end()) visit(*found->second);
}

}  // namespace ingot::contract
