// The write-ahead logs of an engine's directory.
#include "storage/log_files.h"

#include <filesystem>

namespace ingot::storage {

uint64_t log_file_bytes(const std::string& directory) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".log") continue;
    std::error_code gone;  // deleted since it was listed
    const uint64_t size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace ingot::storage
