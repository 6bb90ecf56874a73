// A RocksDB file system that remembers how much of each file was synced, so that a test can see
// what a power loss would leave.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ingot::storage {

// Thread safe.
class SyncedSizes {
 public:
  using Synced = std::shared_ptr<std::atomic<uint64_t>>;

  // How many bytes of the new file are synced, to be kept true; it may be renamed meanwhile.
  Synced create(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void remove(const std::string& path);

  // Copies of `directory` what a power loss would leave: of each file as much as was synced.
  void copy_synced(const std::string& directory, const std::string& to) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Synced> bytes_;  // guarded by mutex_
};

std::unique_ptr<rocksdb::Env> make_synced_env(const std::shared_ptr<SyncedSizes>& sizes);

}  // namespace ingot::storage
