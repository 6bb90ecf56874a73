// Setting, breaking and dropping the marks of WATCH, and what FLUSHDB and SWAPDB do to them.
#include "src/exec/watch_table.h"

#include <algorithm>

#include "storage/codec.h"

namespace ingot::exec {

namespace {

// What watches_ calls a key of a database.
std::string id_of(int db, std::string_view key) {
  std::string id;
  storage::append_be32(&id, static_cast<uint32_t>(db));
  id.append(key);
  return id;
}

int db_of(std::string_view id) {
  return static_cast<int>(storage::read_be32(id));
}

std::string_view key_of(std::string_view id) {
  return id.substr(sizeof(uint32_t));
}

}  // namespace

void WatchTable::watch(const std::shared_ptr<contract::Client>& client, int db,
                       std::string_view key, bool expired) {
  Watcher& watcher = clients_[client->id];
  watcher.client = client;
  auto& [id, watches] = *watches_.try_emplace(id_of(db, key)).first;
  if (std::ranges::find(watches, &watcher, &Watch::watcher) != watches.end()) return;
  watches.push_back({.watcher = &watcher, .expired = expired});
  watcher.ids.push_back(id);
  client->watched_bytes += contract::watched_bytes(key);
}

void WatchTable::unwatch(uint64_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  Watcher& watcher = found->second;
  for (const std::string_view id : watcher.ids) {
    const auto watches = watches_.find(std::string(id));
    std::erase_if(watches->second, [&](const Watch& watch) { return watch.watcher == &watcher; });
    if (watches->second.empty()) watches_.erase(watches);
  }
  watcher.client->watch_broken = false;
  watcher.client->watched_bytes = 0;
  clients_.erase(found);
}

bool WatchTable::broken(uint64_t client, types::KeyWriter& keys) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  const Watcher& watcher = found->second;
  if (watcher.client->watch_broken) return true;
  return std::ranges::any_of(watcher.ids, [&](std::string_view id) {
    const auto& watches = watches_.find(std::string(id))->second;
    return !std::ranges::find(watches, &watcher, &Watch::watcher)->expired &&
           keys.has_expired(db_of(id), key_of(id));
  });
}

void WatchTable::mark(int db, std::string_view key, types::KeyWriter& keys) {
  const auto watches = watches_.find(id_of(db, key));
  if (watches == watches_.end()) return;
  for (Watch& watch : watches->second) {
    if (watch.expired && !keys.stored_in(keys.keyspace(db), key)) {
      watch.expired = false;
    } else {
      watch.watcher->client->watch_broken = true;
    }
  }
}

// The keys of a database are those of another keyspace now (nothing: there are none). Whatever was
// there on either side has changed, but for what had expired.
void WatchTable::mark_existing(int db, storage::KeyspaceId before,
                               std::optional<storage::KeyspaceId> after, types::KeyWriter& keys) {
  for (auto& [id, watches] : watches_) {
    if (db_of(id) != db) continue;
    const std::string_view key = key_of(id);
    const bool was_stored = keys.stored_in(before, key);
    const bool is_stored = after && keys.stored_in(*after, key);
    if (!was_stored && !is_stored) continue;
    const bool is_stale = !is_stored || keys.is_stale_in(*after, key);
    for (Watch& watch : watches) {
      if ((watch.expired || !was_stored) && is_stale) {
        watch.expired = is_stored;
      } else {
        watch.watcher->client->watch_broken = true;
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
