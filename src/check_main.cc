// ingot-check: verifies the data of a stopped server, without changing it.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "src/check/data_check.h"
#include "storage/engine.h"
#include "storage/scratch_copy.h"

namespace {

constexpr const char* kUsage =
    "Usage: ingot-check DIRECTORY\n"
    "\n"
    "Verifies the data that a stopped ingot-server keeps in DIRECTORY (its 'dir', or 'ingot-data' "
    "in\n"
    "it): the checksums of all that is kept, counts, references, expiry index, orders. Changes\n"
    "nothing; what it needs stands beside the data until it ends: links, and a copy of the log. "
    "(When\n"
    "it is killed they stay until the next check or start of the server.)\n"
    "\n"
    "Exit code: 0 sound, 1 not (each problem is a line), 2 it could not be verified.\n";
constexpr uint64_t kProblemsShown = 100;

int check(const std::string& path) {
  const ingot::storage::ScratchCopy copy(path);
  if (!copy.status().ok()) {
    fmt::print(stderr, "ingot-check: {}\n", copy.status().message());
    return 2;
  }
  uint64_t problems = 0;
  const auto problem = [&](const std::string& text) {
    if (++problems <= kProblemsShown) fmt::print("{}\n", text);
  };
  const auto [engine, status] = ingot::storage::open_engine(copy.engine(), {.path = copy.path()});
  if (!engine) {
    fmt::print("{} cannot open it: {}\n", copy.engine(), status.message());
    return status.code() == ingot::storage::Status::Code::kCorruption ? 1 : 2;
  }
  if (const std::string why = ingot::check::version_problem(*engine); !why.empty()) {
    fmt::print(stderr, "ingot-check: {}\n", why);
    return 2;
  }
  ingot::check::DataCheck checked(*engine, problem);
  checked.run();
  if (problems > kProblemsShown) fmt::print("... and {} more\n", problems - kProblemsShown);
  fmt::print(
      "{}: {} keys, {} elements of large values, {} collections to be reclaimed, {} problems\n",
      copy.engine(), checked.keys(), checked.elements(), checked.garbage(), problems);
  return problems == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const std::filesystem::path given = argv[1];
  const std::filesystem::path inside = given / "ingot-data";
  return check((std::filesystem::is_directory(inside) ? inside : given).string());
}
