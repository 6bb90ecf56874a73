// Which client watches which keys, and whether one of them changed. The writer thread's own: WATCH
// and EXEC run there, so a mark is always set in the order of execution.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  struct Watcher {
    std::shared_ptr<contract::Client> client;  // of which it is known whether a key has changed
    std::vector<std::string_view> ids;         // of watches_
  };
  struct Watch {
    Watcher* watcher;
    bool expired;  // when it was watched, and still there: nothing has changed once it is removed
  };
  // By database and key. Neither table moves what it holds.
  using Watches = std::unordered_map<std::string, std::vector<Watch>>;

  void mark(int db, std::string_view key, types::KeyWriter& keys);
  void mark_existing(int db, storage::KeyspaceId before, std::optional<storage::KeyspaceId> after,
                     types::KeyWriter& keys);

  std::unordered_map<uint64_t, Watcher> clients_;
  Watches watches_;
};

}  // namespace ingot::exec
