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

enum class ChannelKind : uint8_t { kChannel, kPattern, kShard };
inline constexpr size_t kChannelKinds = 3;

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
  bool any_hears_events() const { return hears_events_.load(std::memory_order_relaxed); }
  types::ThreadSet event_threads() const;

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

  ByName& table(ChannelKind kind) { return kind == ChannelKind::kShard ? shards_ : channels_; }
  const ByName& table(ChannelKind kind) const {
    return kind == ChannelKind::kShard ? shards_ : channels_;
  }
  void remove(Client& client, ChannelKind kind, std::string_view name);
  void count_event_listener(const Client& client, ChannelKind kind, std::string_view name,
                            int change);

  mutable std::mutex mutex_;
  ByName channels_;
  ByName shards_;
  PatternMap<Subscribers> patterns_;
  std::array<uint32_t, types::kIoThreadsMax> event_listeners_{};  // subscriptions, by thread
  types::ThreadSet event_threads_;
  std::atomic<bool> hears_events_{false};
};

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
