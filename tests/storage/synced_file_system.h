// A RocksDB file system that remembers how much of each file was synced, so that a test can see
// what a power loss would leave.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ingot::storage {

// Thread safe.
class SyncedSizes {
 public:
  void set(const std::string& path, uint64_t bytes);
  void rename(const std::string& from, const std::string& to);
  void remove(const std::string& path);

  // Copies of `directory` what a power loss would leave: of each file as much as was synced.
  void copy_synced(const std::string& directory, const std::string& to) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> bytes_;  // guarded by mutex_
};

std::unique_ptr<rocksdb::Env> make_synced_env(const std::shared_ptr<SyncedSizes>& sizes);

}  // namespace ingot::storage
