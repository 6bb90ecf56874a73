// RocksDB's memtable on our tree (storage/rocksdb/memtable_tree.h) instead of its skip list.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>

namespace ingot::storage {

// Needs allow_concurrent_memtable_write = false, and keys in the order of their bytes.
std::shared_ptr<rocksdb::MemTableRepFactory> make_tree_memtables();

}  // namespace ingot::storage
