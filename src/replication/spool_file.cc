// By the calls of the system.
#include "src/replication/spool_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/data/free_disk.h"

namespace ingot::replication {

using storage::Status;

namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr uint64_t kLookEachBytes = 8 << 20;

Status spool_error(std::string_view what) {
  const auto code = errno == ENOSPC || errno == EDQUOT ? Status::Code::kNoSpace : Status::Code::kIo;
  return {code, fmt::format("{} a temporary file: {}", what, std::strerror(errno))};
}

}  // namespace

std::unique_ptr<SpoolFile> SpoolFile::open(const std::string& directory, uint64_t min_free_bytes,
                                           Status* error) {
  std::string path = directory + "/temp-rdb-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) {
    *error = spool_error("can't create");
    return nullptr;
  }
  ::unlink(path.c_str());
  return std::unique_ptr<SpoolFile>(new SpoolFile(directory, fd, min_free_bytes));
}

SpoolFile::~SpoolFile() {
  ::close(fd_);
}

// Each that asks in the old way has such a file, of all the data.
Status SpoolFile::look_at_disk() const {
  if (data::free_disk_bytes(directory_) >= min_free_bytes_) return {};
  return {Status::Code::kNoSpace, "less than 'min-free-disk' is left for a temporary file"};
}

Status SpoolFile::append(std::string_view bytes) {
  if (bytes_ >= next_look_) {
    next_look_ = bytes_ + kLookEachBytes;
    if (Status status = look_at_disk(); !status.ok()) return status;
  }
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return spool_error("can't write");
    bytes.remove_prefix(static_cast<size_t>(put));
    bytes_ += static_cast<uint64_t>(put);
  }
  return {};
}

std::optional<std::string> SpoolFile::read() {
  std::string piece(std::min<uint64_t>(kPieceBytes, bytes_ - read_), '\0');
  const ssize_t got = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(read_));
  if (got <= 0) return std::nullopt;
  piece.resize(static_cast<size_t>(got));
  read_ += piece.size();
  return piece;
}

}  // namespace ingot::replication
