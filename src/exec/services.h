// The parts of the running server that executing commands needs, by reference; made by the
// composition root, and outliving every command. Each part has its own thread rule.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/data/services.h"
#include "src/exec/couriers.h"

namespace ingot::access {
class Users;
}
namespace ingot::contract {
class ClientRegistry;
class RunningServer;
class Replicas;
class Table;
}  // namespace ingot::contract

namespace ingot::script {
class Scripts;
}

namespace ingot::exec {

class ClientPause;
struct Following;

// The load of Redis' files at the first start. While it is on, clients are answered -LOADING.
struct LoadProgress {
  std::atomic<bool> on{false};
  std::atomic<int64_t> start_s{0};  // Unix
  std::atomic<uint64_t> total_bytes{0};
  std::atomic<uint64_t> loaded_bytes{0};
  std::atomic<uint64_t> keys_loaded{0};
  std::atomic<uint64_t> keys_expired{0};  // and left out
};

struct Services {
  data::Services data;
  contract::ClientRegistry& clients;
  access::Users& users;
  contract::RunningServer& server;
  const contract::Table& table;
  contract::Channels& channels;
  contract::Tracking& tracking;
  Couriers& couriers;
  script::Scripts& scripts;
  ClientPause& pause;
  contract::Replicas& replicas;
  Following& following;
  LoadProgress loading = {};
};

}  // namespace ingot::exec
