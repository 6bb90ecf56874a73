// Reading logs past damage: what is whole is found again, and nothing that is only the contents of
// a value is taken for a record.
#include <catch2/catch.hpp>

#include <fstream>
#include <utility>
#include <vector>

#include "storage/codec.h"
#include "storage/salvage/checksum.h"
#include "storage/salvage/log_records.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::storage {
namespace {

// One whole record in the log form, of less than a block.
std::string fragment(const std::string& record) {
  const std::string typed = '\1' + record;
  std::string out;
  append_le32(&out, masked_crc(typed));
  out.push_back(static_cast<char>(record.size() & 0xff));
  out.push_back(static_cast<char>(record.size() >> 8));
  return out + typed;
}

struct Found {
  std::vector<std::string> records;
  std::vector<std::pair<uint64_t, uint64_t>> damaged;
  bool at_end = false;
};

Found read(const std::string& bytes) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("log");
  std::ofstream(path, std::ios::binary) << bytes;
  Found found;
  const Status status =
      read_log(path, {.record = [&](auto record) { found.records.emplace_back(record); },
                      .damage =
                          [&](uint64_t begin, uint64_t end, bool at_end) {
                            found.damaged.emplace_back(begin, end);
                            found.at_end = at_end;
                          }});
  REQUIRE(status.ok());
  return found;
}

}  // namespace

TEST_CASE("a log is read on behind damage") {
  const std::string first = fragment("first"), second = fragment("second"),
                    third = fragment("third");
  const std::string log = first + second + third;
  CHECK(read(log).records == std::vector<std::string>{"first", "second", "third"});
  CHECK(read(log).damaged.empty());
  for (size_t at = first.size(); at < first.size() + second.size(); ++at) {
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    INFO(at);
    const Found found = read(damaged);
    CHECK(found.records == std::vector<std::string>{"first", "third"});
    REQUIRE(found.damaged.size() == 1);
    CHECK(found.damaged[0] ==
          std::pair<uint64_t, uint64_t>{first.size(), first.size() + second.size()});
    CHECK_FALSE(found.at_end);
  }
}

TEST_CASE("a log that ends within a record") {
  const std::string first = fragment("first"), second = fragment("second");
  for (size_t bytes = 1; bytes < second.size(); ++bytes) {
    INFO(bytes);
    const Found found = read(first + second.substr(0, bytes));
    CHECK(found.records == std::vector<std::string>{"first"});
    REQUIRE(found.damaged.size() == 1);
    CHECK(found.at_end);
  }
  CHECK(read(first + std::string(100, '\0')).damaged.empty());  // room that was taken in advance
}

TEST_CASE("a log in a value is no part of the log") {
  std::string outer = fragment("a value with " + fragment("a log in it") + " and more");
  outer[8] = static_cast<char>(outer[8] ^ 1);
  const Found found = read(outer + fragment("next"));
  CHECK(found.records == std::vector<std::string>{"next"});
  CHECK(found.damaged.size() == 1);
}

}  // namespace ingot::storage
