// RocksDB's memtable on our tree (storage/rocksdb/memtable_tree.h) instead of its skip list.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>
#include <span>
#include <string_view>

namespace ingot::storage {

// The memtables of one space. Needs allow_concurrent_memtable_write = false, and keys in the order
// of their bytes.
class TreeMemtables : public rocksdb::MemTableRepFactory {
 public:
  TreeMemtables();

  using MemTableRepFactory::CreateMemTableRep;
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& order,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* prefix,
                                          rocksdb::Logger* logger) override;
  const char* Name() const override { return "ingot.TreeMemtables"; }

  // Brings the places where these internal keys will stand in the newest memtable nearer to the
  // processor. By any thread.
  void prefetch(std::span<const std::string_view> internal_keys) const;

 private:
  class Newest;
  const std::shared_ptr<Newest> newest_;  // memtables outlive the space
};

}  // namespace ingot::storage
