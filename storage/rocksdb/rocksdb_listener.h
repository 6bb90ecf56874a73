// Hands RocksDB's background errors and recoveries to the callbacks of EngineOptions.
#pragma once

#include <memory>

#include "storage/engine.h"

namespace rocksdb {
class EventListener;
}

namespace ingot::storage {

std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(const EngineOptions& options);

}  // namespace ingot::storage
