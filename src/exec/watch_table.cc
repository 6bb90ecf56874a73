// Setting, breaking and dropping the marks of WATCH, and what FLUSHDB and SWAPDB do to them.
#include "src/exec/watch_table.h"

#include <algorithm>

#include "storage/codec.h"

namespace ingot::exec {

std::string WatchTable::id_of(int db, std::string_view key) {
  std::string id;
  storage::append_be32(&id, static_cast<uint32_t>(db));
  id.append(key);
  return id;
}

void WatchTable::watch(const std::shared_ptr<contract::Client>& client, int db,
                       std::string_view key, bool expired) {
  if (!watchers_[id_of(db, key)].insert(client->id).second) return;
  Watcher& watcher = clients_[client->id];
  watcher.client = client;
  watcher.keys.push_back({.db = db, .key = std::string(key), .expired = expired});
}

void WatchTable::unwatch(uint64_t client) {
  auto found = clients_.find(client);
  if (found == clients_.end()) return;
  for (const Watched& watched : found->second.keys) {
    auto watchers = watchers_.find(id_of(watched.db, watched.key));
    watchers->second.erase(client);
    if (watchers->second.empty()) watchers_.erase(watchers);
  }
  found->second.client->watch_broken = false;
  clients_.erase(found);
}

bool WatchTable::broken(uint64_t client, types::KeyWriter& keys) {
  auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  if (found->second.client->watch_broken) return true;
  return std::any_of(found->second.keys.begin(), found->second.keys.end(),
                     [&](const Watched& watched) {
                       return !watched.expired && keys.has_expired(watched.db, watched.key);
                     });
}

void WatchTable::mark(int db, std::string_view key, types::KeyWriter& keys) {
  const auto watchers = watchers_.find(id_of(db, key));
  if (watchers == watchers_.end()) return;
  for (const uint64_t client : watchers->second) {
    Watcher& watcher = clients_[client];
    const auto watched = std::ranges::find_if(
        watcher.keys, [&](const Watched& each) { return each.db == db && each.key == key; });
    if (watched->expired && !keys.stored_in(keys.keyspace(db), key)) {
      watched->expired = false;
    } else {
      watcher.client->watch_broken = true;
    }
  }
}

// The keys of a database are those of another keyspace now (nothing: there are none). Whatever was
// there on either side has changed, but for what had expired.
void WatchTable::mark_existing(int db, storage::KeyspaceId before,
                               std::optional<storage::KeyspaceId> after, types::KeyWriter& keys) {
  for (auto& [client, watcher] : clients_) {
    for (Watched& watched : watcher.keys) {
      if (watched.db != db) continue;
      const bool was_stored = keys.stored_in(before, watched.key);
      const bool is_stored = after && keys.stored_in(*after, watched.key);
      if (!was_stored && !is_stored) continue;
      const bool was_stale = watched.expired || !was_stored;
      const bool is_stale = !is_stored || keys.is_stale_in(*after, watched.key);
      if (was_stale && is_stale) {
        watched.expired = is_stored;
      } else {
        watcher.client->watch_broken = true;
      }
    }
  }
}

void WatchTable::apply(const types::Effects& effects, types::KeyWriter& keys) {
  for (const auto& touched : effects.touched) {
    if (touched.modified) mark(touched.db, touched.key, keys);
  }
  for (const auto& swapped : effects.swapped) {
    const bool is_empty = swapped.keyspace_a == swapped.keyspace_b;
    mark_existing(swapped.a, swapped.keyspace_a,
                  is_empty ? std::nullopt : std::optional(swapped.keyspace_b), keys);
    if (swapped.a != swapped.b) {
      mark_existing(swapped.b, swapped.keyspace_b, swapped.keyspace_a, keys);
    }
  }
}

}  // namespace ingot::exec
