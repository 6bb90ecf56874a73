// What the commands of an EXEC may change of its client, kept so that it can be taken back: where
// the EXEC is undone, and before it runs again.
//
// Threads: the writer's, while the client is the EXEC's alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/contract/channels.h"
#include "src/contract/client.h"
#include "src/contract/tracking.h"

namespace ingot::exec {

// All but what it hears of. Small, whatever its commands were.
class ClientState {
 public:
  explicit ClientState(const contract::Client& client);
  void restore(contract::Client& client) const;

 private:
  const int db_;
  const int resp_;
  const contract::ReplyMode reply_mode_;
  const bool close_after_reply_;
  const bool authenticated_;
  const bool no_evict_;
  const bool no_touch_;
  const std::string name_;
  const std::string library_name_;
  const std::string library_version_;
  const std::shared_ptr<access::Account> account_;
};

// What it hears of: its subscriptions, and the keys that it tracks.
class ClientHearing {
 public:
  // `channels` null: its subscriptions do not change.
  ClientHearing(const contract::Client& client, const contract::Channels* channels,
                const contract::Tracking& tracking);
  void restore(contract::Client& client, contract::Channels& channels,
               contract::Tracking& tracking) const;

 private:
  const uint32_t tracking_;
  const uint64_t redirect_;
  const std::vector<std::string> prefixes_;
  std::vector<std::vector<std::string>> subscriptions_;  // of each kind, in order; or none
};

}  // namespace ingot::exec
