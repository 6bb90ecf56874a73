// A damaged log: an end that a crash cut off is forgiven, damage before it is not.
#include <catch2/catch.hpp>

#include <fstream>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr int kRecords = 400;

std::filesystem::path largest_log(const std::string& directory) {
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".log") continue;
    if (log.empty() || entry.file_size() > std::filesystem::file_size(log)) log = entry.path();
  }
  return log;
}

}  // namespace

TEST_CASE("a damaged log") {
  TestEngine engine(GENERATE("rocksdb", "leveldb"));
  INFO(engine.name());
  for (int i = 0; i < kRecords; ++i) {
    REQUIRE(engine.put(Space::kMeta, "k" + std::to_string(i), noise(500, 1)).ok());
  }
  engine.close();
  const std::filesystem::path log = largest_log(engine.options().path);
  const auto bytes = std::filesystem::file_size(log);
  REQUIRE(bytes > kRecords * 500);

  SECTION("cut off in its last record, it loses that record alone") {
    std::filesystem::resize_file(log, bytes - 100);
    engine.reopen();
    CHECK(engine.scan(Space::kMeta).size() == kRecords - 1);
    CHECK(engine.get(Space::kMeta, "k" + std::to_string(kRecords - 1)) == "<absent>");
  }
  SECTION("damaged in the middle, it is refused rather than shortened") {
    std::fstream(log, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(bytes / 2))
        .write("damage", 6);
    const auto [opened, status] = open_engine(engine.name(), engine.options());
    CHECK(opened == nullptr);
    CHECK(status.code() == Status::Code::kCorruption);
  }
}

}  // namespace ingot::storage
