// A second directory with the same data, to be opened while the first stays as it is: table files,
// which never change, are linked, the others copied. Opening an engine replays its log and may
// write and compact, which happens to the copy alone.
//
// One thread. The directory is locked as its engine locks it, so no server can start on it
// meanwhile.
#pragma once

#include <string>

#include "storage/status.h"

namespace ingot::storage {

// Removes the copies of `path` that killed processes have left: their links keep what the data has
// dropped. By the holder of the engine's lock, without which nobody makes one.
void remove_scratch_copies(const std::string& path);

class ScratchCopy {
 public:
  // `path`: a directory that open_engine() made. The copy stands beside it. ok() tells whether it
  // does: kBusy while a server has the directory.
  explicit ScratchCopy(const std::string& path);
  ~ScratchCopy();  // the copy goes
  ScratchCopy(const ScratchCopy&) = delete;
  ScratchCopy& operator=(const ScratchCopy&) = delete;

  const Status& status() const { return status_; }
  const std::string& path() const { return path_; }      // of the copy
  const std::string& engine() const { return engine_; }  // the name of the one that wrote it

 private:
  Status make(const std::string& path);

  std::string path_;
  std::string engine_;
  int lock_ = -1;
  Status status_;
};

}  // namespace ingot::storage
