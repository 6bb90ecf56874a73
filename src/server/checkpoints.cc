// Renaming, removing and measuring the directories of checkpoints.
#include "src/server/checkpoints.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/metrics/log.h"
#include "storage/durable_file.h"

namespace ingot::server {

using storage::Status;
namespace fs = std::filesystem;

namespace {

std::string place(const std::string& path, uint64_t number) {
  return number == 0 ? path : path + "." + std::to_string(number);
}

// The number behind `path` in a name; none: it is not the place of a checkpoint.
std::optional<uint64_t> number_of(const std::string& name, const std::string& path) {
  if (!name.starts_with(path + ".")) return std::nullopt;
  uint64_t number = 0;
  (void)std::from_chars(name.data() + path.size() + 1, name.data() + name.size(), number);
  if (number == 0 || name != place(path, number)) return std::nullopt;
  return number;
}

// All but the last one, wherever somebody has left a gap.
std::vector<std::pair<uint64_t, std::string>> older(const std::string& path) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(path).parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().string();
    if (const auto number = number_of(name, path)) found.emplace_back(*number, name);
  }
  return found;
}

}  // namespace

Status put_checkpoint(const CheckpointPlan& plan, const std::string& fresh) {
  std::error_code error;
  uint64_t free = 0;
  while (fs::exists(place(plan.path, free), error)) ++free;
  for (; free > 0 && !error; --free) {
    fs::rename(place(plan.path, free - 1), place(plan.path, free), error);
  }
  if (!error) fs::rename(fresh, plan.path, error);
  if (error) return {Status::Code::kIo, error.message()};
  const std::string folder = fs::path(plan.path).parent_path().string();
  if (Status status = storage::sync_directory(folder); !status.ok()) return status;
  for (const auto& [number, name] : older(plan.path)) {
    if (number < plan.keep) continue;
    // Under another name first: whoever is killed half way leaves no half under this one.
    fs::rename(name, fresh, error);
    if (!error) {
      if (Status status = storage::sync_directory(folder); !status.ok()) return status;
      fs::remove_all(fresh, error);
    }
    if (error) metrics::log::warning("Cannot remove {}: {}", name, error.message());
  }
  return {};
}

CheckpointSpace measure_checkpoints(const std::string& path) {
  struct File {
    uint64_t names = 0;  // in checkpoints
    uint64_t links = 0;  // in all
    uint64_t bytes = 0;
  };
  std::map<std::pair<dev_t, ino_t>, File> files;
  CheckpointSpace space;
  const auto look = [&](const std::string& directory) {
    std::error_code error;
    if (!fs::is_directory(directory, error)) return;
    ++space.count;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
      struct stat found {};
      if (lstat(it->path().c_str(), &found) != 0) continue;  // removed meanwhile
      File& file = files[{found.st_dev, found.st_ino}];
      ++file.names;
      file.links = found.st_nlink;
      file.bytes = static_cast<uint64_t>(found.st_blocks) * 512;
    }
  };
  look(path);
  for (const auto& [number, name] : older(path)) look(name);
  for (const auto& [id, file] : files) {
    if (file.names == file.links) space.bytes += file.bytes;
  }
  return space;
}

}  // namespace ingot::server
