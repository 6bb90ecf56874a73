// Linking and copying a data directory under its engine's lock.
#include "storage/scratch_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "storage/durable_file.h"

namespace ingot::storage {

namespace fs = std::filesystem;

namespace {

Status failed(std::string_view what, const fs::path& path, const std::string& why) {
  return {Status::Code::kIo, fmt::format("cannot {} {}: {}", what, path.string(), why)};
}

// What the copies of a directory are called, but for a number.
std::string copies_of(const fs::path& directory) {
  return directory.filename().string() + ".check-";
}

}  // namespace

void remove_scratch_copies(const std::string& path) {
  std::error_code ignored;
  const fs::path directory = fs::canonical(path, ignored);
  const std::string prefix = copies_of(directory);
  for (const fs::directory_entry& each : fs::directory_iterator(directory.parent_path(), ignored)) {
    const std::string name = each.path().filename();
    const bool is_copy = name.starts_with(prefix) && name.size() > prefix.size() &&
                         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (is_copy) fs::remove_all(each.path(), ignored);
  }
}

ScratchCopy::ScratchCopy(const std::string& path) : status_(make(path)) {}

ScratchCopy::~ScratchCopy() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

Status ScratchCopy::make(const std::string& path) {
  const fs::path marker = fs::path(path) / "ENGINE";
  const Status read = read_file(marker.string(), &engine_);
  if (!read.ok() && fs::exists(marker)) return read;
  if (engine_.empty()) return failed("read", marker, "it is not Ingot's data");

  const fs::path lock = fs::path(path) / "LOCK";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) return failed("open", lock, std::strerror(errno));
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(lock_, F_SETLK, &whole) != 0) {
    return {Status::Code::kBusy, fmt::format("{} is in use by another process", path)};
  }

  std::error_code error;
  // However it is named: what stands in it is the server's.
  const fs::path directory = fs::canonical(path, error);
  if (error) return failed("find", path, error.message());
  remove_scratch_copies(directory);
  const std::string copy =
      (directory.parent_path() / fmt::format("{}{}", copies_of(directory), getpid())).string();
  if (!fs::create_directory(copy, error)) return failed("create", copy, error.message());
  path_ = copy;
  for (const fs::directory_entry& file : fs::directory_iterator(path, error)) {
    const std::string name = file.path().filename();
    if (!file.is_regular_file() || name == "LOCK") continue;
    const fs::path to = fs::path(copy) / name;
    const std::string extension = file.path().extension();
    if (extension == ".sst" || extension == ".ldb") {
      fs::create_hard_link(file.path(), to, error);
      if (!error) continue;  // another file system may have no links
    }
    if (!fs::copy_file(file.path(), to, error)) return failed("copy", file.path(), error.message());
  }
  if (error) return failed("read", path, error.message());
  return {};
}

}  // namespace ingot::storage
