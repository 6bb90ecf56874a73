// Which client watches which keys, and whether one of them changed. The writer thread's own: WATCH
// and EXEC run there, so a mark is always set in the order of execution.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/client.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

class WatchTable {
 public:
  bool empty() const { return clients_.empty(); }
  void watch(const std::shared_ptr<contract::Client>& client, int db, std::string_view key,
             bool expired);
  void unwatch(uint64_t client);
  // Whether the client's EXEC must fail: a key changed, or expired since it was watched.
  bool broken(uint64_t client, types::KeyWriter& keys);

  // A unit was kept: marks everybody who watches what it changed.
  void apply(const types::Effects& effects, types::KeyWriter& keys);

 private:
  struct Watched {
    int db;
    std::string key;
    bool expired;  // when it was watched, and still there: nothing has changed once it is removed
  };
  struct Watcher {
    std::shared_ptr<contract::Client> client;  // of which it is known whether a key has changed
    std::vector<Watched> keys;
  };
  void mark(int db, std::string_view key, types::KeyWriter& keys);
  void mark_existing(int db, storage::KeyspaceId before, std::optional<storage::KeyspaceId> after,
                     types::KeyWriter& keys);

  static std::string id_of(int db, std::string_view key);

  boost::unordered_flat_map<uint64_t, Watcher> clients_;
  boost::unordered_flat_map<std::string, boost::unordered_flat_set<uint64_t>> watchers_;
};

}  // namespace ingot::exec
