// A file that no longer takes a byte, while this process has it open.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <system_error>

namespace ingot::storage {

// A disk on which even what overwrites takes space, as where it is copied on write, and there is
// none: as long as this lives, for the one file of this process at `path`.
class FullFile {
 public:
  explicit FullFile(const std::string& path) {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      if (std::filesystem::read_symlink(each, error) != path) continue;
      fd_ = std::stoi(each.path().filename());
    }
    REQUIRE(fd_ >= 0);
    kept_ = dup(fd_);
    const int full = open("/dev/full", O_WRONLY);
    REQUIRE(dup2(full, fd_) == fd_);
    close(full);
  }
  ~FullFile() {
    dup2(kept_, fd_);
    close(kept_);
  }

 private:
  int fd_ = -1;
  int kept_ = -1;
};

}  // namespace ingot::storage
