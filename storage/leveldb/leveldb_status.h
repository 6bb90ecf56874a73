// LevelDB's statuses in Ingot's terms. Pure functions.
#pragma once

#include <leveldb/status.h>

#include "storage/status.h"

namespace ingot::storage {

Status to_status(const leveldb::Status& status);

// As to_status, for a failed open: tells a directory that another process holds.
Status to_open_status(const leveldb::Status& status, const std::string& path);

}  // namespace ingot::storage
