// A file that is read although parts of it may not be readable. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "storage/status.h"

namespace ingot::storage {

class DamagedFile {
 public:
  explicit DamagedFile(const std::string& path);
  ~DamagedFile();
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;

  const Status& status() const { return status_; }  // of opening it
  uint64_t size() const { return size_; }
  // As much of [offset, offset + bytes) as there is; replaces *out. What the disk refuses to give
  // reads as bytes of 0xff, which no checksum agrees with.
  void read(uint64_t offset, uint64_t bytes, std::string* out) const;

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  Status status_;
};

}  // namespace ingot::storage
