// What RocksDB is told of the room on its disk. Any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ingot::storage {

struct DiskRoom {
  // Compactions fail before they take these bytes, the last ones, which logs and flushes need: a
  // compaction that finds no room costs nothing, but a log does. Not called before a database is
  // opened.
  const std::function<uint64_t()> reserve_bytes;
  // Free space is said to be more than anybody asks for. After a compaction that found none RocksDB
  // waits for as much as all its compactions had set out to write; it does not recover before, not
  // from a later error that refuses writes either, and admits no other recovery. So it is told
  // where half of the disk is free, and all data could be written anew, too: that sum of RocksDB's
  // may fall below zero (a table's number that is given twice, after a kill), and is 2^64 then.
  std::atomic<bool> is_ample = false;
  // When a compaction last found no room; of the steady clock.
  mutable std::atomic<std::chrono::steady_clock::time_point> found_none_at{};
};

// A table's file that leaves the reserve when it is a compaction that writes it. `room` outlives
// it.
std::unique_ptr<rocksdb::FSWritableFile> leaving_room(std::unique_ptr<rocksdb::FSWritableFile> file,
                                                      const std::string& path,
                                                      const DiskRoom* room);

}  // namespace ingot::storage
