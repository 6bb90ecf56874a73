// ingot-repair: salvages the data of a damaged directory into a new one, and says what was lost.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "src/repair/data_repair.h"
#include "storage/durable_file.h"
#include "storage/engine.h"
#include "storage/salvage/salvage.h"

namespace {

namespace fs = std::filesystem;
using ingot::storage::Status;

constexpr const char* kUsage =
    "Usage: ingot-repair DIRECTORY TARGET\n"
    "\n"
    "Salvages what can still be read of the data that a stopped ingot-server keeps in DIRECTORY\n"
    "(its 'dir', or 'ingot-data' in it), and writes it, whole again, to TARGET/ingot-data, where\n"
    "ingot-server --dir TARGET finds it. DIRECTORY is only read. TARGET must not exist, or be\n"
    "empty; beside it up to twice the room of the data is needed, half of that until it ends.\n"
    "\n"
    "Prints a line for each thing that is lost: a key, elements of a key, or what stood in a part\n"
    "of a file. What was lost may have been the news of a change: then there is an older version\n"
    "of a key, or one that had been removed, and a line says so. When the list of current files\n"
    "(MANIFEST) is lost, that may be any key.\n"
    "\n"
    "Exit code: 0 nothing was lost, 1 something was, 2 it could not be done.\n";

// Goes with what is in it.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

int refuse(const std::string& why) {
  fmt::print(stderr, "ingot-repair: {}\n", why);
  return 2;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const fs::path in = fs::weakly_canonical(inner);
  const fs::path out = fs::weakly_canonical(outer);
  return std::ranges::mismatch(out, in).in1 == out.end();
}

// Makes the repaired data durable under its name: a TARGET that is there is whole.
Status put_in_place(const std::string& made, const fs::path& target) {
  std::error_code error;
  fs::create_directories(target, error);
  if (!error) fs::rename(made, target / "ingot-data", error);
  if (error) {
    return {Status::Code::kIo,
            fmt::format("cannot move the result to {}: {}", target.string(), error.message())};
  }
  if (Status status = ingot::storage::sync_directory(target.string()); !status.ok()) return status;
  return ingot::storage::sync_directory(target.parent_path().string());
}

int repair(const fs::path& data, const fs::path& target) {
  std::error_code error;
  if (fs::exists(target) && !(fs::is_directory(target) && fs::is_empty(target, error))) {
    return refuse(fmt::format("{} is there already, and not empty", target.string()));
  }
  if (is_inside(target, data)) {
    return refuse(fmt::format("{} is inside of what is to be salvaged", target.string()));
  }
  const ScratchDirectory scratch(fmt::format("{}.repair-{}", target.string(), getpid()));
  fs::create_directories(scratch.path(), error);
  if (error) return refuse(fmt::format("cannot create {}: {}", scratch.path(), error.message()));

  ingot::storage::Salvage salvage(data.string(), scratch.path() + "/gathered");
  if (Status status = salvage.gather(); !status.ok()) return refuse(status.message());
  for (const std::string& note : salvage.notes()) fmt::print("nothing lost: {}\n", note);

  uint64_t lost = 0;
  const std::string made = scratch.path() + "/ingot-data";
  uint64_t keys = 0;
  {
    const auto [engine, opened] = ingot::storage::open_engine(salvage.engine(), {.path = made});
    if (!engine) return refuse(opened.message());
    ingot::repair::DataRepair repaired(salvage, *engine, [&](const std::string& what) {
      ++lost;
      fmt::print("lost: {}\n", what);
    });
    if (Status status = repaired.run(); !status.ok()) return refuse(status.message());
    keys = repaired.keys();
  }
  if (Status status = put_in_place(made, target); !status.ok()) return refuse(status.message());
  fmt::print("{}: {} keys are in {}, {} losses\n", salvage.engine(), keys, target.string(), lost);
  return lost == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || argv[1][0] == '-' || argv[2][0] == '-') {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const fs::path given = argv[1];
  const fs::path inside = given / "ingot-data";
  // A trailing slash is no part of a name that others are made of.
  const fs::path target = (fs::absolute(argv[2]) / ".").lexically_normal().parent_path();
  return repair(fs::is_directory(inside) ? inside : given, target);
}
