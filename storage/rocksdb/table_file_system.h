// The files that RocksDB reads at random, its tables: read through the ReadRing of the thread where
// there is one, so that work which must not wait ends with "Aborted" instead (is_wanted()).
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <memory>

namespace ingot::storage {

std::shared_ptr<rocksdb::FileSystem> make_table_file_system(
    std::shared_ptr<rocksdb::FileSystem> target);

// Whether a read ended because the ReadRing has to fetch something first.
bool is_wanted(const rocksdb::Status& status);

}  // namespace ingot::storage
