// Small files that must survive a power loss.
#include "storage/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace ingot::storage {
namespace {

Status write_and_sync(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? Status() : file_failure("sync", path);
}

}  // namespace

Status file_failure(std::string_view what, const std::string& path) {
  const int error = errno;
  return {error == ENOSPC || error == EDQUOT ? Status::Code::kNoSpace : Status::Code::kIo,
          fmt::format("cannot {} {}: {}", what, path, std::strerror(error))};
}

Status sync_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return file_failure("open", path);
  Status status = fsync(fd) == 0 ? Status() : file_failure("sync", path);
  close(fd);
  return status;
}

Status read_file(const std::string& path, std::string* bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_failure("open", path);
  bytes->clear();
  std::array<char, 4096> piece;
  ssize_t got = 1;
  while (got > 0 || (got < 0 && errno == EINTR)) {
    got = read(fd, piece.data(), piece.size());
    if (got > 0) bytes->append(piece.data(), static_cast<size_t>(got));
  }
  Status status = got == 0 ? Status() : file_failure("read", path);
  close(fd);
  return status;
}

Status write_durably(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return file_failure("create", fresh);
  Status status = write_and_sync(fd, fresh, bytes);
  close(fd);
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0)
    status = file_failure("rename", fresh);
  if (!status.ok()) {
    unlink(fresh.c_str());  // the disk may be full of it
    return status;
  }
  return sync_directory(std::filesystem::path(path).parent_path().string());
}

}  // namespace ingot::storage
