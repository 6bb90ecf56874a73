// The tables of channels and patterns. A client's own names are in it, too, so that leaving costs
// what it had.
#include "src/contract/channels.h"

#include <algorithm>

#include "net/connection.h"
#include "src/contract/client.h"

namespace ingot::contract {

namespace {

size_t index_of(ChannelKind kind) {
  return static_cast<size_t>(kind);
}

// Whether a keyspace event may go to such a subscription.
bool may_hear_events(ChannelKind kind, std::string_view name) {
  constexpr std::string_view kBegins = "__key";
  if (kind == ChannelKind::kShard || kind == ChannelKind::kMonitor) return false;
  if (kind == ChannelKind::kChannel) return name.starts_with(kBegins);
  const std::string prefix = literal_prefix(name).text;
  return kBegins.starts_with(prefix) || prefix.starts_with(kBegins);
}

}  // namespace

void Channels::Subscribers::add(Client& client) {
  const int thread = client.thread_index;
  auto at = std::ranges::find(by_thread, thread, &std::pair<int, ClientSet>::first);
  if (at == by_thread.end()) at = by_thread.insert(at, {thread, {}});
  at->second.insert(&client);
  ++clients;
}

void Channels::Subscribers::remove(Client& client) {
  const auto at =
      std::ranges::find(by_thread, client.thread_index, &std::pair<int, ClientSet>::first);
  at->second.erase(&client);
  --clients;
  if (at->second.empty()) by_thread.erase(at);
}

void Channels::Subscribers::join(Audience& audience) const {
  audience.clients += clients;
  for (const auto& [thread, clients_there] : by_thread) {
    audience.threads.set(static_cast<size_t>(thread));
  }
}

const Channels::ClientSet* Channels::Subscribers::on(int thread) const {
  const auto at = std::ranges::find(by_thread, thread, &std::pair<int, ClientSet>::first);
  return at == by_thread.end() ? nullptr : &at->second;
}

void Channels::Listeners::count(const Client& client, int change) {
  const auto thread = static_cast<size_t>(client.thread_index);
  on_thread[thread] += static_cast<uint32_t>(change);
  threads.set(thread, on_thread[thread] > 0);
  any.store(threads.any(), std::memory_order_relaxed);
}

void Channels::count_listener(const Client& client, ChannelKind kind, std::string_view name,
                              int change) {
  if (kind == ChannelKind::kMonitor) monitors_by_thread_.count(client, change);
  if (may_hear_events(kind, name)) event_listeners_.count(client, change);
}

void Channels::subscribe(Client& client, ChannelKind kind, std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto& names = client.subscriptions.names[index_of(kind)];
  if (client.subscriptions.closed || names.contains(name)) return;
  names.emplace(name);
  client.subscribed[index_of(kind)].fetch_add(1, std::memory_order_relaxed);
  client.subscribed_bytes.fetch_add(name.size() + kSubscriptionBytes, std::memory_order_relaxed);
  Subscribers& subscribers = kind == ChannelKind::kPattern
                                 ? patterns_.at(name)
                                 : table(kind).try_emplace(std::string(name)).first->second;
  subscribers.add(client);
  count_listener(client, kind, name, +1);
}

void Channels::unsubscribe(Client& client, ChannelKind kind, std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto& names = client.subscriptions.names[index_of(kind)];
  const auto found = names.find(name);
  if (found == names.end()) return;
  remove(client, kind, name);
  names.erase(found);
}

// From all tables but the client's own.
void Channels::remove(Client& client, ChannelKind kind, std::string_view name) {
  client.subscribed[index_of(kind)].fetch_sub(1, std::memory_order_relaxed);
  client.subscribed_bytes.fetch_sub(name.size() + kSubscriptionBytes, std::memory_order_relaxed);
  count_listener(client, kind, name, -1);
  if (kind == ChannelKind::kPattern) {
    Subscribers* const subscribers = patterns_.find(name);
    subscribers->remove(client);
    if (subscribers->clients == 0) patterns_.erase(name);
    return;
  }
  const auto found = table(kind).find(name);
  found->second.remove(client);
  if (found->second.clients == 0) table(kind).erase(found);
}

std::vector<std::string> Channels::names_of(const Client& client, ChannelKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto& names = client.subscriptions.names[index_of(kind)];
  return {names.begin(), names.end()};
}

bool Channels::has(const Client& client, ChannelKind kind, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return client.subscriptions.names[index_of(kind)].contains(name);
}

bool Channels::close(Client& client, size_t limit) {
  const std::lock_guard lock(mutex_);
  client.subscriptions.closed = true;
  for (const ChannelKind kind :
       {ChannelKind::kChannel, ChannelKind::kPattern, ChannelKind::kShard, ChannelKind::kMonitor}) {
    auto& names = client.subscriptions.names[index_of(kind)];
    for (; !names.empty(); names.erase(names.begin())) {
      if (limit-- == 0) return false;
      remove(client, kind, *names.begin());
    }
  }
  return true;
}

Channels::Audience Channels::audience(std::string_view channel, bool sharded) const {
  Audience audience;
  const std::lock_guard lock(mutex_);
  const ByName& names = table(sharded ? ChannelKind::kShard : ChannelKind::kChannel);
  const auto found = names.find(channel);
  if (found != names.end()) found->second.join(audience);
  if (sharded) return audience;
  patterns_.for_matches(channel, [&](const std::string&, const Subscribers& subscribers) {
    subscribers.join(audience);
  });
  return audience;
}

types::ThreadSet Channels::event_threads() const {
  const std::lock_guard lock(mutex_);
  return event_listeners_.threads;
}

types::ThreadSet Channels::monitor_threads() const {
  const std::lock_guard lock(mutex_);
  return monitors_by_thread_.threads;
}

std::vector<std::string> Channels::names_like(ChannelKind kind,
                                              std::optional<std::string_view> pattern) const {
  constexpr size_t kPortion = 256;  // then others get the lock
  std::vector<std::string> names;
  std::string last;
  for (bool more = true, begun = false; more; begun = true) {
    const std::lock_guard lock(mutex_);
    auto at = begun ? table(kind).upper_bound(last) : table(kind).begin();
    for (size_t i = 0; i < kPortion && at != table(kind).end(); ++i, ++at) {
      if (!pattern || glob_matches(*pattern, at->first)) names.push_back(at->first);
      if (i + 1 == kPortion) last = at->first;
    }
    more = at != table(kind).end();
  }
  return names;
}

size_t Channels::subscribers(ChannelKind kind, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = table(kind).find(name);
  return found == table(kind).end() ? 0 : found->second.clients;
}

size_t Channels::size(ChannelKind kind) const {
  const std::lock_guard lock(mutex_);
  return kind == ChannelKind::kPattern ? patterns_.size() : table(kind).size();
}

}  // namespace ingot::contract
