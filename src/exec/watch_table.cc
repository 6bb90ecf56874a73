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

void WatchTable::watch(uint64_t client, int db, std::string_view key, bool expired) {
  if (!watchers_[id_of(db, key)].insert(client).second) return;
  clients_[client].keys.push_back({.db = db, .key = std::string(key), .expired = expired});
}

void WatchTable::unwatch(uint64_t client) {
  auto found = clients_.find(client);
  if (found == clients_.end()) return;
  for (const Watched& watched : found->second.keys) {
    auto watchers = watchers_.find(id_of(watched.db, watched.key));
    watchers->second.erase(client);
    if (watchers->second.empty()) watchers_.erase(watchers);
  }
  clients_.erase(found);
}

bool WatchTable::broken(uint64_t client, types::KeyWriter& keys) {
  auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  if (found->second.dirty) return true;
  return std::any_of(found->second.keys.begin(), found->second.keys.end(),
                     [&](const Watched& watched) {
                       return !watched.expired && keys.has_expired(watched.db, watched.key);
                     });
}

void WatchTable::mark(int db, std::string_view key) {
  auto watchers = watchers_.find(id_of(db, key));
  if (watchers == watchers_.end()) return;
  for (uint64_t client : watchers->second) clients_[client].dirty = true;
}

// A flush or a swap changes the keys that exist on either side of it.
void WatchTable::mark_existing(int db, const types::Effects::Swapped& swapped,
                               types::KeyWriter& keys) {
  for (auto& [client, watcher] : clients_) {
    for (const Watched& watched : watcher.keys) {
      if (watched.db == db && (keys.stored_in(swapped.keyspace_a, watched.key) ||
                               keys.stored_in(swapped.keyspace_b, watched.key))) {
        watcher.dirty = true;
      }
    }
  }
}

void WatchTable::apply(const types::Effects& effects, types::KeyWriter& keys) {
  for (const auto& touched : effects.touched) {
    if (touched.modified) mark(touched.db, touched.key);
  }
  for (const auto& swapped : effects.swapped) {
    mark_existing(swapped.a, swapped, keys);
    if (swapped.b != swapped.a) mark_existing(swapped.b, swapped, keys);
  }
}

}  // namespace ingot::exec
