// The clients that track, and their prefixes.
#include "src/contract/tracking.h"

#include "src/contract/client.h"

namespace ingot::contract {

namespace {

template <typename ByThread>
void take_out(ByThread& clients, const Client& client) {
  const auto found = clients.find(client.thread_index);
  if (found == clients.end()) return;
  found->second.erase(client.id);
  if (found->second.empty()) clients.erase(found);
}

// Of a prefix of a client, which the client and the table of all have.
uint64_t bytes_of(std::string_view prefix) {
  return 400 + 2 * prefix.size();
}

}  // namespace

bool Tracking::enable(Client& client, const Options& options) {
  const std::lock_guard lock(mutex_);
  if (client.tracking_closed) return true;
  uint64_t bytes = prefix_bytes_;
  for (const std::string_view prefix : options.prefixes) bytes += bytes_of(prefix);
  if (bytes > bytes_max.load(std::memory_order_relaxed)) return false;
  const uint32_t before = client.tracking;
  client.tracking = tracks::kOn | options.mode | (before & tracks::kCaching);
  client.tracking_redirect = options.redirect;
  if ((before & tracks::kOn) == 0) {
    by_thread_[client.thread_index].emplace(client.id, &client);
    clients_.fetch_add(1);
  }
  if ((options.mode & tracks::kBroadcast) == 0) return true;
  std::vector<std::string_view> prefixes = options.prefixes;
  if (prefixes.empty()) prefixes.emplace_back();
  for (const std::string_view prefix : prefixes) {
    if (client.tracking_prefixes.emplace(prefix).second) prefix_bytes_ += bytes_of(prefix);
    by_prefix_.at(prefix)[client.thread_index].emplace(client.id, &client);
  }
  return true;
}

void Tracking::remove(Client& client) {
  if ((client.tracking & tracks::kOn) == 0) return;
  client.tracking = 0;
  client.tracking_redirect = 0;
  take_out(by_thread_, client);
  for (const std::string& prefix : client.tracking_prefixes) {
    prefix_bytes_ -= bytes_of(prefix);
    ByThread* const clients = by_prefix_.find(prefix);
    take_out(*clients, client);
    if (clients->empty()) by_prefix_.erase(prefix);
  }
  client.tracking_prefixes.clear();
  clients_.fetch_sub(1);
}

void Tracking::disable(Client& client) {
  const std::lock_guard lock(mutex_);
  remove(client);
}

void Tracking::close(Client& client) {
  const std::lock_guard lock(mutex_);
  remove(client);
  client.tracking_closed = true;
}

size_t Tracking::prefixes() const {
  const std::lock_guard lock(mutex_);
  return by_prefix_.size();
}

std::vector<std::string> Tracking::prefixes_of(const Client& client) const {
  const std::lock_guard lock(mutex_);
  return {client.tracking_prefixes.begin(), client.tracking_prefixes.end()};
}

types::ThreadSet Tracking::threads() const {
  const std::lock_guard lock(mutex_);
  types::ThreadSet threads;
  for (const auto& [thread, clients] : by_thread_) threads.set(static_cast<size_t>(thread));
  return threads;
}

Client* Tracking::find(int thread, uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto there = by_thread_.find(thread);
  if (there == by_thread_.end()) return nullptr;
  const auto found = there->second.find(id);
  return found == there->second.end() ? nullptr : found->second;
}

}  // namespace ingot::contract
