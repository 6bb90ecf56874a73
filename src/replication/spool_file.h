// A file without a name, for what has to be whole before it is sent. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/status.h"

namespace ingot::replication {

class SpoolFile {
 public:
  // On the file system of this directory, of which it leaves so much to others. Null, with the
  // reason.
  static std::unique_ptr<SpoolFile> open(const std::string& directory, uint64_t min_free_bytes,
                                         storage::Status* error);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  storage::Status append(std::string_view bytes);
  uint64_t bytes() const { return bytes_; }
  // The next piece from its beginning; nothing when it cannot be read. Not at its end.
  std::optional<std::string> read();
  bool at_end() const { return read_ == bytes_; }

 private:
  SpoolFile(std::string directory, int fd, uint64_t min_free_bytes)
      : directory_(std::move(directory)), fd_(fd), min_free_bytes_(min_free_bytes) {}
  storage::Status look_at_disk() const;

  const std::string directory_;
  const int fd_;
  const uint64_t min_free_bytes_;
  uint64_t next_look_ = 0;  // bytes_ at which the free space is looked at
  uint64_t bytes_ = 0;
  uint64_t read_ = 0;
};

}  // namespace ingot::replication
