// Hands RocksDB's background errors, recoveries and log lines to those who want to know.
#pragma once

#include <functional>
#include <memory>

#include "storage/engine.h"

namespace rocksdb {
class EventListener;
class Logger;
}  // namespace rocksdb

namespace ingot::storage {

// `on_stopped`: RocksDB takes no write any more.
std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(
    const EngineOptions& options, std::function<void(const Status&)> on_stopped);

// Its errors go to options.on_log; what else it has to say, nobody reads.
std::shared_ptr<rocksdb::Logger> make_rocksdb_logger(const EngineOptions& options);

}  // namespace ingot::storage
