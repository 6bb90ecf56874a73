// Reading and replacing files by the calls of the system.
#include "src/settings/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ingot::settings {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  bool read_all(std::string* content) const {
    std::array<char, 16384> piece;
    while (true) {
      const ssize_t bytes = ::read(fd_, piece.data(), piece.size());
      if (bytes == 0) return true;
      if (bytes < 0 && errno != EINTR) return false;
      if (bytes > 0) content->append(piece.data(), static_cast<size_t>(bytes));
    }
  }

  bool write_all(std::string_view content) const {
    while (!content.empty()) {
      const ssize_t bytes = ::write(fd_, content.data(), content.size());
      if (bytes < 0 && errno != EINTR) return false;
      if (bytes > 0) content.remove_prefix(static_cast<size_t>(bytes));
    }
    return true;
  }

 private:
  int fd_;
};

// Gives the new file the permissions of the old one; without an old one it stays the owner's alone.
bool copy_permissions(const std::string& old_path, int fd) {
  struct stat old = {};
  return stat(old_path.c_str(), &old) != 0 || fchmod(fd, old.st_mode & 07777) == 0;
}

}  // namespace

std::expected<std::string, int> read_whole_file(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  if (!file.is_open() || !file.read_all(&content)) return std::unexpected(errno);
  return content;
}

Error replace_file(const std::string& path, std::string_view content) {
  std::string temporary = path + ".XXXXXX";
  const File file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return std::strerror(errno);
  const bool written = file.write_all(content) && copy_permissions(path, file.fd()) &&
                       fsync(file.fd()) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    unlink(temporary.c_str());
    return std::strerror(error);
  }
  const auto directory = std::filesystem::path(path).parent_path();
  const File parent(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.is_open() || fsync(parent.fd()) != 0) return std::strerror(errno);
  return {};
}

}  // namespace ingot::settings
