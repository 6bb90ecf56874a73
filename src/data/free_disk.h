// What those look at who fill a disk with something that can be given up. Any thread.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>
#include <limits>
#include <string>

namespace ingot::data {

// For whoever is no superuser, on the disk of this directory; where that is not told there is no
// end.
inline uint64_t free_disk_bytes(const std::string& directory) {
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}

}  // namespace ingot::data
