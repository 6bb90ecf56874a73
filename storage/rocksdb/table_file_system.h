// The files that RocksDB reads at random, its tables: on a thread that must not wait for the disk
// (storage/no_wait_reads.h) a read ends with "Aborted" instead (is_wanted()). And what it is told
// of free space.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <memory>

#include "storage/engine.h"
#include "storage/rocksdb/disk_room.h"

namespace ingot::storage {

std::shared_ptr<rocksdb::FileSystem> make_table_file_system(
    std::shared_ptr<rocksdb::FileSystem> target, const DiskRoom* room);

// How far RocksDB may go on this thread: to its files, if they do not wait.
rocksdb::ReadTier read_tier(Tier tier);

// Whether a read ended because something has to be fetched first.
bool is_wanted(const rocksdb::Status& status);

}  // namespace ingot::storage
