// A Cursor over one column family. See storage/engine.h for the contract.
#pragma once

#include <memory>

#include "storage/engine.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Snapshot;
}  // namespace rocksdb

namespace ingot::storage {

std::unique_ptr<Cursor> make_rocksdb_cursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* space,
                                            const rocksdb::Snapshot* snapshot,
                                            const CursorOptions& options);

}  // namespace ingot::storage
