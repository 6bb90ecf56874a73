// The file system that RocksDB works on: that of the machine, but for its tables
// (table_file_system.h) and its write-ahead logs, which report to a LogLedger. A log that an append
// failed on ends there, torn bytes taken back: RocksDB begins another when it recovers, and what it
// would still append is the rest of a refused write.
#pragma once

#include <memory>

#include "storage/log_ledger.h"
#include "storage/rocksdb/disk_room.h"

namespace rocksdb {
class Env;
}

namespace ingot::storage {

// All must outlive the Env. Its threads and clock are those of the default Env.
std::unique_ptr<rocksdb::Env> make_log_env(rocksdb::Env* target, LogLedger* ledger,
                                           const DiskRoom* room);

}  // namespace ingot::storage
