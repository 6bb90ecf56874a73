// Tables of level 0 and of the level below it, which hold a memtable or some: their filter is one
// block. In parts it costs each look-up a search for its part, and whoever loads keys asks all
// these tables for each of them. Deeper ones are large, and memory may hold parts of theirs.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/table.h>

#include <memory>

namespace ingot::storage {

// `young` for what is written there, `others` for all else; each reads what either has written.
// Works on a file system that gives its tables out by for_table().
std::shared_ptr<rocksdb::TableFactory> divide_tables(std::shared_ptr<rocksdb::TableFactory> young,
                                                     std::shared_ptr<rocksdb::TableFactory> others);

// RocksDB's public headers show a factory nothing of the table that is begun. How long its file is
// expected to live tells the level, and is told before on the same thread.
std::unique_ptr<rocksdb::FSWritableFile> for_table(std::unique_ptr<rocksdb::FSWritableFile> file);

}  // namespace ingot::storage
