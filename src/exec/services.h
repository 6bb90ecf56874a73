// The parts of the running server that executing commands needs, by reference; made by the
// composition root, and outliving every command. Each part has its own thread rule.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "src/data/services.h"
#include "src/types/events.h"

namespace ingot::access {
class Users;
}
namespace ingot::contract {
class ClientRegistry;
class RunningServer;
class Table;
}  // namespace ingot::contract

namespace ingot::exec {

// Who hears what happens to keys: from the writer, after the commit, and ("keymiss") from whichever
// thread reads that a key is not there.
struct EventHook {
  std::function<void(std::span<const types::Event>)> tell = {};  // empty: nothing is collected
  std::atomic<uint32_t> wanted{0};                               // bits of types::notify

  uint32_t kinds() const { return tell ? wanted.load(std::memory_order_relaxed) : 0; }
};

struct Services {
  data::Services data;
  contract::ClientRegistry& clients;
  access::Users& users;
  contract::RunningServer& server;
  const contract::Table& table;
  EventHook& events;
};

}  // namespace ingot::exec
