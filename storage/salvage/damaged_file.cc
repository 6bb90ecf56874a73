// Reading in one piece, and where that fails page by page.
#include "storage/salvage/damaged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ingot::storage {
namespace {

constexpr uint64_t kPageBytes = 4096;

bool read_whole(int fd, uint64_t offset, char* to, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t count = pread(fd, to, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<uint64_t>(count);
  }
  return true;
}

}  // namespace

DamagedFile::DamagedFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat facts = {};
  if (fd_ < 0 || fstat(fd_, &facts) != 0) {
    status_ = {Status::Code::kIo, fmt::format("cannot open {}: {}", path, std::strerror(errno))};
    return;
  }
  size_ = static_cast<uint64_t>(facts.st_size);
}

DamagedFile::~DamagedFile() {
  if (fd_ >= 0) close(fd_);
}

void DamagedFile::read(uint64_t offset, uint64_t bytes, std::string* out) const {
  bytes = offset < size_ ? std::min(bytes, size_ - offset) : 0;
  out->assign(bytes, '\xff');
  if (read_whole(fd_, offset, out->data(), bytes)) return;
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t piece = std::min(bytes - at, kPageBytes - (offset + at) % kPageBytes);
    if (!read_whole(fd_, offset + at, out->data() + at, piece)) {
      std::fill_n(out->begin() + static_cast<ptrdiff_t>(at), piece, '\xff');
    }
    at += piece;
  }
}

}  // namespace ingot::storage
