// Hands RocksDB's background errors, recoveries and log lines to those who want to know.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "storage/engine.h"

namespace rocksdb {
class EventListener;
class Logger;
}  // namespace rocksdb

namespace ingot::storage {

struct RocksdbNews {
  std::function<void(const Status&)> on_stopped;  // RocksDB takes no write any more
  std::function<void()> on_recovered;             // it has no error any more
  std::function<void()> on_flush_begun;           // told by the thread that flushes
  // A compaction that RocksDB began by itself has ended, in the column family of this name.
  std::function<void(const std::string& space, bool found_no_room)> on_compacted;
};
std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(const EngineOptions& options,
                                                              RocksdbNews news);

// Its errors go to options.on_log; what else it has to say, nobody reads.
std::shared_ptr<rocksdb::Logger> make_rocksdb_logger(const EngineOptions& options);

}  // namespace ingot::storage
