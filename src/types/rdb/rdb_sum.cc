// Tables for each of eight bytes: what one does to the sum when so many others follow it.
#include "src/types/rdb/rdb_sum.h"

#include <array>
#include <bit>
#include <cstring>

namespace ingot::types::rdb {

namespace {

constexpr uint64_t kReflectedPolynomial = 0x95ac9329ac4bc9b5;
constexpr size_t kStride = 8;

using Tables = std::array<std::array<uint64_t, 256>, kStride>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = sum;
  }
  for (size_t behind = 1; behind < kStride; ++behind) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[behind - 1][byte];
      tables[behind][byte] = tables[0][before & 255] ^ before >> 8;
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

void RunningSum::pass(std::string_view piece) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t sum = sum_;
  while (piece.size() >= kStride) {
    uint64_t next;
    std::memcpy(&next, piece.data(), kStride);
    next ^= sum;
    sum = 0;
    for (size_t i = 0; i < kStride; ++i) {
      sum ^= kTables[kStride - 1 - i][next >> (8 * i) & 255];
    }
    piece.remove_prefix(kStride);
  }
  for (const char byte : piece) {
    sum = kTables[0][(sum ^ static_cast<uint8_t>(byte)) & 255] ^ sum >> 8;
  }
  sum_ = sum;
}

}  // namespace ingot::types::rdb
