// RocksDB's statuses in Ingot's terms. Pure functions.
#pragma once

#include <rocksdb/status.h>

#include "storage/engine.h"
#include "storage/status.h"

namespace ingot::storage {

Status to_status(const rocksdb::Status& status);

// As to_status, for what stopped RocksDB: kNoSpace only if it can go on once there is space.
Status to_stop(const rocksdb::Status& status);

// As to_status, for a failed open: tells a directory that another process holds.
Status to_open_status(const rocksdb::Status& status, const std::string& path);

// Of what was asked of certain files: RocksDB's own work has them at the moment, nothing was
// changed.
bool is_conflict(const rocksdb::Status& status);

// The answer to a point read at `tier` that returned `status` and a value that is `empty`.
// Fills `*error` (may be null) only for Lookup::kError.
Lookup to_lookup(const rocksdb::Status& status, Tier tier, bool empty, Status* error);

}  // namespace ingot::storage
