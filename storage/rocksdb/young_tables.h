// Tables of level 0 and of the level below it: their filter is one block. In parts it costs each
// look-up a search for its part, and whoever loads keys asks all these tables for each of them.
// Deeper ones are large, and memory may hold parts of theirs. A table of level 0 is a memtable. One
// of the level below it may hold millions of short keys: a filter that the cache would not keep
// would be read whole by each look-up, so there it depends on how many keys such tables have.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <cstdint>
#include <memory>

namespace ingot::storage {

struct DividedTables {
  std::shared_ptr<rocksdb::TableFactory> young;   // writes what is written there
  std::shared_ptr<rocksdb::TableFactory> others;  // writes all else
  uint64_t keys_max = 0;  // in a table as large as they become below level 0, for a whole filter
};

// Gives the space a factory that writes in one of two ways, and reads what either has written.
// Works on a file system that gives its tables out by for_table(). `cf` says by then how large
// tables become.
void divide_tables(rocksdb::ColumnFamilyOptions* cf, DividedTables tables);

// RocksDB's public headers show a factory nothing of the table that is begun. How long its file is
// expected to live tells the level, and its thread or its priority whether a memtable is flushed;
// all that is told before on the same thread.
std::unique_ptr<rocksdb::FSWritableFile> for_table(std::unique_ptr<rocksdb::FSWritableFile> file);

}  // namespace ingot::storage
