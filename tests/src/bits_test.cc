// Bits, fields, combinations and HyperLogLogs, each against a plain model.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "src/types/bits.h"
#include "src/types/hyperloglog_bytes.h"

namespace ingot::types {
namespace {

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  // Long runs of equal bytes, as bitmaps have them.
  char byte = 0;
  for (char& at : bytes) {
    if (random() % 8 == 0)
      byte = static_cast<char>(random() % 3 == 0 ? random() : (random() % 2) * 255);
    at = byte;
  }
  return bytes;
}

bool bit_of(const std::string& bytes, uint64_t at) {
  return (static_cast<unsigned char>(bytes[at / 8]) >> (7 - at % 8) & 1) != 0;
}

TEST_CASE("bits are counted and found as one by one", "[bits]") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = random_bytes(random, random() % 60 + 1);
    const uint64_t bits = bytes.size() * 8;
    const uint64_t from = random() % (bits + 1);
    const uint64_t until = from + random() % (bits - from + 1);
    const bool wanted = random() % 2 == 0;
    uint64_t ones = 0;
    std::optional<uint64_t> first;
    for (uint64_t at = from; at < until; ++at) {
      ones += bit_of(bytes, at);
      if (!first && bit_of(bytes, at) == wanted) first = at;
    }
    CHECK(count_ones(bytes, from, until) == ones);
    CHECK(find_bit(bytes, wanted, from, until) == first);
  }
}

TEST_CASE("a field is read as it was written and leaves its neighbours alone", "[bits]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const bool is_signed = random() % 2 == 0;
    const FieldType type{.is_signed = is_signed,
                         .bits = static_cast<unsigned>(random() % (is_signed ? 64 : 63) + 1)};
    const auto at = static_cast<unsigned>(random() % 8);
    std::string before(kFieldBytesMax, '\0');
    for (char& byte : before) byte = static_cast<char>(random());
    std::string after = before;
    const auto value = static_cast<int64_t>(random());
    const int64_t fitting = add_to_field(value, 0, type, Overflow::kWrap).value();
    write_field(after, at, type, value);
    CHECK(read_field(after, at, type) == fitting);
    for (uint64_t bit = 0; bit < before.size() * 8; ++bit) {
      if (bit < at || bit >= at + type.bits) CHECK(bit_of(before, bit) == bit_of(after, bit));
    }
  }
}

TEST_CASE("a field overflows as it is told", "[bits]") {
  const FieldType i64{.is_signed = true, .bits = 64};
  const FieldType u8{.is_signed = false, .bits = 8};
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  CHECK(add_to_field(kMax, 1, i64, Overflow::kWrap) == kMin);
  CHECK(add_to_field(kMax, 1, i64, Overflow::kSaturate) == kMax);
  CHECK(add_to_field(kMin, -1, i64, Overflow::kSaturate) == kMin);
  CHECK(add_to_field(kMin, -1, i64, Overflow::kFail) == std::nullopt);
  CHECK(add_to_field(250, 10, u8, Overflow::kWrap) == 4);
  CHECK(add_to_field(250, -251, u8, Overflow::kWrap) == 255);
  CHECK(add_to_field(250, 10, u8, Overflow::kSaturate) == 255);
  CHECK(add_to_field(250, -251, u8, Overflow::kSaturate) == 0);
  CHECK(add_to_field(250, 5, u8, Overflow::kFail) == 255);
  CHECK(add_to_field(250, 6, u8, Overflow::kFail) == std::nullopt);
}

TEST_CASE("registers hold their highest rank, sparse and dense", "[hyperloglog]") {
  std::mt19937_64 random(7);
  const uint64_t sparse_bytes_max = GENERATE(uint64_t{0}, 100, 3000, 40000);
  HyperLogLog value;
  HllRegisters expected{};
  for (int i = 0; i < 3000; ++i) {
    const auto index = static_cast<unsigned>(random() % kHllRegisters);
    const auto rank = static_cast<unsigned>(random() % (i % 500 == 499 ? 51 : 32) + 1);
    const bool raises = rank > expected[index];
    CHECK((value.raise(index, rank, sparse_bytes_max) == HyperLogLog::Change::kDone) == raises);
    if (raises) expected[index] = static_cast<uint8_t>(rank);
  }
  HllRegisters found{};
  REQUIRE(value.merge_into(&found));
  CHECK(found == expected);
  REQUIRE(value.make_dense());
  HllRegisters dense{};
  REQUIRE(value.merge_into(&dense));
  CHECK(dense == expected);
}

TEST_CASE("the estimate is near and is kept until something changes", "[hyperloglog]") {
  HyperLogLog value;
  CHECK(value.kept_estimate() == 0u);
  for (int i = 0; i < 50000; ++i) value.add(std::to_string(i), 3000);
  CHECK_FALSE(value.kept_estimate());
  HllRegisters registers{};
  REQUIRE(value.merge_into(&registers));
  const uint64_t estimate = hll_estimate(registers);
  CHECK(std::fabs(static_cast<double>(estimate) - 50000) < 1500);
  value.keep_estimate(estimate);
  CHECK(value.kept_estimate() == estimate);
  CHECK(value.add("0", 3000) == HyperLogLog::Change::kNone);
  CHECK(value.kept_estimate() == estimate);
}

TEST_CASE("no bytes that look like a HyperLogLog lead astray", "[hyperloglog]") {
  std::mt19937 random(7);
  HyperLogLog base;
  for (int i = 0; i < 200; ++i) base.add(std::to_string(i), 3000);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = base.bytes();
    bytes.resize(HyperLogLog::kHeadBytes + random() % (bytes.size() - HyperLogLog::kHeadBytes + 1));
    for (int i = 0; i < 3 && bytes.size() > HyperLogLog::kHeadBytes; ++i) {
      const size_t body = bytes.size() - HyperLogLog::kHeadBytes;
      bytes[HyperLogLog::kHeadBytes + random() % body] = static_cast<char>(random());
    }
    HyperLogLog value(bytes);
    HllRegisters registers{};
    const bool sound = value.merge_into(&registers);
    value.describe_runs();
    value.add(std::to_string(round), 3000);
    if (!sound) CHECK_FALSE(HyperLogLog(bytes).make_dense());
  }
}

}  // namespace
}  // namespace ingot::types
