// A copy to look at: it stands beside the data, whatever name that was given.
#include "storage/scratch_copy.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/storage/temporary_directory.h"

namespace ingot::storage {

namespace fs = std::filesystem;

TEST_CASE("a scratch copy stands beside the data, not in it") {
  const TemporaryDirectory directory;
  const fs::path data = directory.file("data");
  fs::create_directory(data);
  std::ofstream(data / "ENGINE") << "rocksdb";
  fs::create_directory_symlink(data, directory.file("link"));
  for (const char* name : {"data", "data/", "data/.", "./data/../data", "link", "link/"}) {
    const ScratchCopy copy(directory.file(name));
    INFO(name << ": " << copy.status().message());
    REQUIRE(copy.status().ok());
    CHECK(fs::canonical(fs::path(copy.path()).parent_path()) == fs::canonical(data.parent_path()));
    CHECK(fs::exists(fs::path(copy.path()) / "ENGINE"));
  }
  CHECK(std::distance(fs::directory_iterator(data), fs::directory_iterator()) == 2);  // and LOCK
}

}  // namespace ingot::storage
