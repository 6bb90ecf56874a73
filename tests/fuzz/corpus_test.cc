// Every input that the fuzzers kept, and every one that once broke something, is tried again.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.h"

namespace ingot::fuzz {
namespace {

void replay(const std::string& name, void (*target)(std::string_view input)) {
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INGOT_FUZZ_CORPUS "/" + name)) {
    INFO(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(file), {});
    REQUIRE_NOTHROW(target(input));
    ++inputs;
  }
  CHECK(inputs > 0);
}

}  // namespace

TEST_CASE("fuzz: requests, cut as they may be", "[fuzz]") {
  replay("resp", resp);
}

TEST_CASE("fuzz: configurations", "[fuzz]") {
  replay("config", config);
}

TEST_CASE("fuzz: rules of users", "[fuzz]") {
  replay("acl", acl);
}

TEST_CASE("fuzz: payloads of RESTORE", "[fuzz]") {
  replay("restore", restore);
}

TEST_CASE("fuzz: commands", "[fuzz]") {
  replay("commands", commands);
}

TEST_CASE("fuzz: scripts and what they are given", "[fuzz]") {
  replay("script", script);
}

}  // namespace ingot::fuzz
