// All connected clients, for CLIENT LIST, CLIENT KILL, INFO and maxclients. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "src/contract/client.h"

namespace ingot::contract {

class ClientRegistry {
 public:
  using Visit = std::function<void(contract::Client&)>;

  uint64_t next_id() { return next_id_.fetch_add(1) + 1; }
  uint64_t newest_id() const { return next_id_.load(); }
  void add(std::shared_ptr<contract::Client> client);
  void remove(uint64_t id);  // also forgets its connection
  size_t size() const;
  // In the order of ids, under the registry's lock: a client's connection stays valid meanwhile.
  // `each` must not call back into the registry. Between clients the lock may be given up: those
  // that come or go meanwhile may be visited or not.
  void for_each(const Visit& each) const;
  // The same for one client; does nothing when it is gone.
  void visit(uint64_t id, const Visit& visit) const;
  // To be kept; its connection may go at any time. Null: it is gone.
  std::shared_ptr<contract::Client> find(uint64_t id) const;

 private:
  std::atomic<uint64_t> next_id_{0};
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<contract::Client>> clients_;
};

}  // namespace ingot::contract
