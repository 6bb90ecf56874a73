// ingot-repair: salvages the data of a damaged directory into a new one, and says what was lost.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "src/repair/data_repair.h"
#include "storage/engine.h"
#include "storage/salvage/salvage.h"
#include "storage/staged_data.h"

namespace {

namespace fs = std::filesystem;
using ingot::storage::Status;

constexpr const char* kUsage =
    "Usage: ingot-repair DIRECTORY TARGET\n"
    "\n"
    "Salvages what can still be read of the data that a stopped ingot-server keeps in DIRECTORY\n"
    "(its 'dir', or 'ingot-data' in it), and writes it, whole again, to TARGET/ingot-data, where\n"
    "ingot-server --dir TARGET finds it. DIRECTORY is only read. TARGET must not exist, or be\n"
    "empty. Where it is up to two and a half times the room of the data is needed, most of that\n"
    "until it ends.\n"
    "\n"
    "Prints a line for each thing that is lost: a key, elements of a key, or what stood in a part\n"
    "of a file. What was lost may have been the news of a change: then there is an older version\n"
    "of a key, or one that had been removed, and a line says so. When the list of current files\n"
    "(MANIFEST) is lost, that may be any key.\n"
    "\n"
    "Exit code: 0 nothing was lost, 1 something was, 2 it could not be done.\n";

int refuse(const std::string& why) {
  fmt::print(stderr, "ingot-repair: {}\n", why);
  return 2;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const fs::path in = fs::weakly_canonical(inner);
  const fs::path out = fs::weakly_canonical(outer);
  return std::ranges::mismatch(out, in).in1 == out.end();
}

int repair(const fs::path& data, const std::string& target) {
  if (is_inside(target, data)) {
    return refuse(fmt::format("{} is inside of what is to be salvaged", target));
  }
  ingot::storage::StagedData made(target, "repair");
  if (!made.status().ok()) return refuse(made.status().message());

  ingot::storage::Salvage salvage(data.string(), made.scratch() + "/gathered");
  if (Status status = salvage.gather(); !status.ok()) return refuse(status.message());
  for (const std::string& note : salvage.notes()) fmt::print("nothing lost: {}\n", note);

  uint64_t lost = 0;
  uint64_t keys = 0;
  {
    const auto [engine, opened] =
        ingot::storage::open_engine(salvage.engine(), {.path = made.path()});
    if (!engine) return refuse(opened.message());
    ingot::repair::DataRepair repaired(salvage, *engine, [&](const std::string& what) {
      ++lost;
      fmt::print("lost: {}\n", what);
    });
    if (Status status = repaired.run(); !status.ok()) return refuse(status.message());
    keys = repaired.keys();
  }
  if (Status status = made.publish(); !status.ok()) return refuse(status.message());
  fmt::print("{}: {} keys are in {}, {} losses\n", salvage.engine(), keys, made.target(), lost);
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
  return repair(fs::is_directory(inside) ? inside : given, argv[2]);
}
