// Files that are there whole, or as they were.
#include <catch2/catch.hpp>

#include <filesystem>

#include "storage/durable_file.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::storage {
namespace {}  // namespace

TEST_CASE("a durable file is replaced as a whole") {
  TemporaryDirectory directory;
  const std::string path = directory.file("name");
  REQUIRE(write_durably(path, "the first").ok());
  REQUIRE(write_durably(path, "second").ok());
  CHECK(content_of(path) == "second");
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  CHECK(write_durably(directory.file("nowhere/name"), "x").code() == Status::Code::kIo);
  // What stands in its way is not written over before it is complete.
  std::filesystem::create_directory(path + ".new");
  CHECK_FALSE(write_durably(path, "third").ok());
  CHECK(content_of(path) == "second");
}

}  // namespace ingot::storage
