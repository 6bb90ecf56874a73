// Who tracks keys (client side caching): the modes of CLIENT TRACKING, and the prefixes of BCAST.
// Which client has read which key stands elsewhere, beside the thread of each client
// (exec/tracking_table.h); here is how much that may be.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/prefix_map.h"
#include "src/types/notices.h"

namespace ingot::contract {

class Client;

// Bits of Client::tracking.
namespace tracks {
enum : uint32_t {
  kOn = 1u << 0,
  kBroadcast = 1u << 1,
  kOptIn = 1u << 2,
  kOptOut = 1u << 3,
  kNoLoop = 1u << 4,
  kCaching = 1u << 5,         // CLIENT CACHING was sent: it holds for the next command
  kBrokenRedirect = 1u << 6,  // whom to tell is gone
};
}  // namespace tracks

// Whether what a client in this mode reads now is remembered.
constexpr bool remembers_reads(uint32_t mode) {
  if ((mode & tracks::kOn) == 0 || (mode & tracks::kBroadcast) != 0) return false;
  const bool caching = (mode & tracks::kCaching) != 0;
  if ((mode & tracks::kOptIn) != 0) return caching;
  return (mode & tracks::kOptOut) == 0 || !caching;
}

class Tracking {
 public:
  struct Options {
    uint32_t mode = 0;      // kBroadcast, kOptIn, kOptOut, kNoLoop
    uint64_t redirect = 0;  // the client that is told instead; 0: none
    std::vector<std::string_view> prefixes;
  };
  // Again changes the mode, and adds prefixes. Nothing happens for a client that was closed. False,
  // and nothing is changed: all prefixes together would take more than bytes_max.
  bool enable(Client& client, const Options& options);
  void disable(Client& client);
  // The client is gone.
  void close(Client& client);

  // Whether what happens to keys is to be told at all.
  bool any() const { return clients_.load() > 0; }
  size_t clients() const { return clients_.load(); }
  size_t prefixes() const;
  std::vector<std::string> prefixes_of(const Client& client) const;

  // The threads that such clients are on.
  types::ThreadSet threads() const;
  // One of those of a thread, or null.
  Client* find(int thread, uint64_t id) const;
  // All of a thread: `each(client)`, under the lock.
  template <typename Each>
  void for_clients(int thread, const Each& each) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_thread_.find(thread);
    if (found == by_thread_.end()) return;
    for (const auto& [id, client] : found->second) each(*client);
  }
  // The prefixes of a key that somebody on the thread wants to hear of: `each(prefix)`; and those
  // who do: `each(client)`.
  template <typename Each>
  void for_prefixes_of(int thread, std::string_view key, const Each& each) const {
    const std::lock_guard lock(mutex_);
    by_prefix_.for_prefixes_of(key, [&](const std::string& prefix, const ByThread& clients) {
      if (clients.contains(thread)) each(prefix);
    });
  }
  template <typename Each>
  void for_clients_of(int thread, std::string_view prefix, const Each& each) {
    const std::lock_guard lock(mutex_);
    const ByThread* const clients = by_prefix_.find(prefix);
    if (clients == nullptr) return;
    const auto found = clients->find(thread);
    if (found == clients->end()) return;
    for (const auto& [id, client] : found->second) each(*client);
  }

  // How much is remembered, in all tables together. A key that clients of several threads have read
  // counts once for each thread.
  struct Amount {
    std::atomic<uint64_t> keys{0};
    std::atomic<uint64_t> items{0};  // a client for a key
    std::atomic<uint64_t> bytes{0};
  };
  Amount remembered;
  std::atomic<uint64_t> keys_max{0};  // tracking-table-max-keys; 0: no limit
  std::atomic<uint64_t> bytes_max{UINT64_MAX};
  bool is_too_much() const {
    const uint64_t max = keys_max.load(std::memory_order_relaxed);
    return (max != 0 && remembered.keys.load(std::memory_order_relaxed) > max) ||
           remembered.bytes.load(std::memory_order_relaxed) >
               bytes_max.load(std::memory_order_relaxed);
  }

 private:
  using ById = std::map<uint64_t, Client*>;
  using ByThread = std::map<int, ById>;

  void remove(Client& client);

  mutable std::mutex mutex_;
  uint64_t prefix_bytes_ = 0;  // by mutex_
  std::atomic<size_t> clients_{0};
  ByThread by_thread_;
  PrefixMap<ByThread> by_prefix_;
};

}  // namespace ingot::contract
