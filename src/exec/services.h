// The parts of the running server that commands may reach, by reference; made by the composition
// root, and outliving every command. Each part has its own thread rule.
#pragma once

#include <functional>
#include <span>

#include "src/types/events.h"

namespace ingot::command {
class Table;
}
namespace ingot::net {
class Server;
}
namespace ingot::server {
class ClientRegistry;
class Config;
class Lifecycle;
class Stats;
}  // namespace ingot::server
namespace ingot::types {
class KeyCursors;
}

namespace ingot::exec {

class Collector;
class ReaderPool;
class Store;
class Writer;

struct Services {
  Store& store;
  Writer& writer;
  ReaderPool& readers;
  Collector& collector;
  server::Config& config;
  server::ClientRegistry& clients;
  server::Stats& stats;
  server::Lifecycle& lifecycle;
  const command::Table& table;
  types::KeyCursors& cursors;
  net::Server* net;  // null in tests that run commands in process
  // Told by the writer, after the commit, what happened to keys, and by whichever thread reads that
  // a key is not there ("keymiss"). May be empty: then nothing is collected.
  std::function<void(std::span<const types::Event>)> on_events = {};
};

}  // namespace ingot::exec
