// The list of those who follow.
#include "src/contract/replicas.h"

#include <algorithm>
#include <utility>

#include "src/contract/client.h"

namespace ingot::contract {

std::string ip_of(const Client& client) {
  if (!client.replica->ip.empty()) return client.replica->ip;
  std::string ip = client.address.substr(0, client.address.rfind(':'));
  if (ip.starts_with('[')) ip = ip.substr(1, ip.size() - 2);
  return ip;
}

void Replicas::add(std::shared_ptr<Client> client) {
  std::lock_guard lock(mutex_);
  clients_.push_back(std::move(client));
  size_ = clients_.size();
}

void Replicas::remove(const Client& client) {
  std::lock_guard lock(mutex_);
  std::erase_if(clients_, [&](const auto& each) { return each.get() == &client; });
  size_ = clients_.size();
}

std::vector<std::shared_ptr<Client>> Replicas::all() const {
  std::lock_guard lock(mutex_);
  return clients_;
}

size_t Replicas::count_acked(uint64_t offset, bool synced) const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(clients_, [&](const auto& client) {
    const Replica& replica = *client->replica;
    return replica.state == Replica::State::kOnline &&
           (synced ? replica.synced : replica.acked) >= offset;
  }));
}

size_t Replicas::count_good(int64_t now_ms) const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(clients_, [&](const auto& client) {
    const Replica& replica = *client->replica;
    return replica.state == Replica::State::kOnline &&
           now_ms - replica.acked_ms <= max_lag_s * 1000;
  }));
}

bool Replicas::lacks_some(int64_t now_ms) const {
  const int64_t wanted = min_to_write;
  if (wanted == 0 || max_lag_s == 0) return false;
  return count_good(now_ms) < static_cast<size_t>(wanted);
}

}  // namespace ingot::contract
