// Who listens to what: the subscriptions of all clients to channels, patterns and shard channels.
// Any thread; each call holds the lock for a name or a short walk.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/pattern_map.h"
#include "src/types/notices.h"

namespace ingot::contract {

class Client;

// kMonitor: of MONITOR, under the name "".
enum class ChannelKind : uint8_t { kChannel, kPattern, kShard, kMonitor };
inline constexpr size_t kChannelKinds = 4;

class Channels {
 public:
  // What one client listens to; a part of it, guarded by the lock of Channels.
  struct Subscriptions {
    std::array<std::set<std::string, std::less<>>, kChannelKinds> names;
    bool closed = false;
  };

  // Nothing happens if it is so already, or the client has been closed.
  void subscribe(Client& client, ChannelKind kind, std::string_view name);
  void unsubscribe(Client& client, ChannelKind kind, std::string_view name);
  std::vector<std::string> names_of(const Client& client, ChannelKind kind) const;
  bool has(const Client& client, ChannelKind kind, std::string_view name) const;
  // The client takes part in nothing any more. Removes at most `limit` of its subscriptions; false
  // when there are more, and the client must stay.
  [[nodiscard]] bool close(Client& client, size_t limit);

  // Who would get a message that is published now: how many, and on which threads.
  struct Audience {
    size_t clients = 0;  // counted again for each pattern
    types::ThreadSet threads;
  };
  Audience audience(std::string_view channel, bool sharded) const;
  // Those on one thread: `each(kind, name of the subscription, client)`. Under the lock.
  template <typename Each>
  void for_receivers(int thread, std::string_view channel, bool sharded, const Each& each) const;

  // The threads on which somebody may listen to keyspace events.
  bool any_hears_events() const { return event_listeners_.any.load(std::memory_order_relaxed); }
  types::ThreadSet event_threads() const;
  // The same of commands (MONITOR); every command of every client asks.
  bool any_monitors() const { return monitors_by_thread_.any.load(std::memory_order_relaxed); }
  types::ThreadSet monitor_threads() const;
  template <typename Each>
  void for_monitors(int thread, const Each& each) const;

  // For PUBSUB; no patterns. Names in the order of bytes.
  std::vector<std::string> names_like(ChannelKind kind,
                                      std::optional<std::string_view> pattern) const;
  size_t subscribers(ChannelKind kind, std::string_view name) const;
  size_t size(ChannelKind kind) const;  // how many different names

 private:
  using ClientSet = boost::unordered_flat_set<Client*>;
  // The subscribers of one name, by thread: few of these.
  struct Subscribers {
    std::vector<std::pair<int, ClientSet>> by_thread;
    size_t clients = 0;

    void add(Client& client);
    void remove(Client& client);
    void join(Audience& audience) const;
    const ClientSet* on(int thread) const;
  };
  using ByName = std::map<std::string, Subscribers, std::less<>>;

  // Subscriptions by thread, and whether there are any at all.
  struct Listeners {
    std::array<uint32_t, types::kIoThreadsMax> on_thread{};
    types::ThreadSet threads;
    std::atomic<bool> any{false};

    void count(const Client& client, int change);
  };

  // Of all kinds but patterns.
  ByName& table(ChannelKind kind) { return tables_[static_cast<size_t>(kind)]; }
  const ByName& table(ChannelKind kind) const { return tables_[static_cast<size_t>(kind)]; }
  void remove(Client& client, ChannelKind kind, std::string_view name);
  void count_listener(const Client& client, ChannelKind kind, std::string_view name, int change);

  mutable std::mutex mutex_;
  std::array<ByName, kChannelKinds> tables_;
  PatternMap<Subscribers> patterns_;
  Listeners event_listeners_;
  Listeners monitors_by_thread_;
};

template <typename Each>
void Channels::for_monitors(int thread, const Each& each) const {
  const std::lock_guard lock(mutex_);
  const ByName& monitors = table(ChannelKind::kMonitor);
  const auto found = monitors.find("");
  const ClientSet* const clients = found == monitors.end() ? nullptr : found->second.on(thread);
  if (clients == nullptr) return;
  for (Client* client : *clients) each(*client);
}

template <typename Each>
void Channels::for_receivers(int thread, std::string_view channel, bool sharded,
                             const Each& each) const {
  const std::lock_guard lock(mutex_);
  const auto tell = [&](ChannelKind kind, std::string_view name, const Subscribers& subscribers) {
    const ClientSet* const clients = subscribers.on(thread);
    if (clients == nullptr) return;
    for (Client* client : *clients) each(kind, name, *client);
  };
  const ChannelKind kind = sharded ? ChannelKind::kShard : ChannelKind::kChannel;
  const auto found = table(kind).find(channel);
  if (found != table(kind).end()) tell(kind, found->first, found->second);
  if (sharded) return;
  patterns_.for_matches(channel, [&](const std::string& pattern, const Subscribers& subscribers) {
    tell(ChannelKind::kPattern, pattern, subscribers);
  });
}

}  // namespace ingot::contract
