// The parts of the running server that executing commands needs, by reference; made by the
// composition root, and outliving every command. Each part has its own thread rule.
#pragma once

#include "src/data/services.h"
#include "src/exec/couriers.h"

namespace ingot::access {
class Users;
}
namespace ingot::contract {
class ClientRegistry;
class RunningServer;
class Table;
}  // namespace ingot::contract

namespace ingot::script {
class Scripts;
}

namespace ingot::exec {

class ClientPause;

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
};

}  // namespace ingot::exec
