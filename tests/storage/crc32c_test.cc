// Our CRC-32C: known values, in pieces, and next to RocksDB's own, whose place it takes.
#include "storage/crc32c.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

// What the linker has put aside.
uint32_t extend_of_rocksdb(uint32_t before, const char* data,
                           size_t bytes) asm("__real__ZN7rocksdb6crc32c6ExtendEjPKcm");

namespace ingot::storage {

TEST_CASE("CRC-32C is that of RFC 3720", "[crc32c]") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
}

TEST_CASE("CRC-32C of pieces is RocksDB's", "[crc32c]") {
  std::mt19937 random(1);
  uint32_t ours = 0;
  uint32_t its = 0;
  std::string all;
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    std::string piece(bytes * (bytes % 7 + 1), '\0');
    for (char& byte : piece) byte = static_cast<char>(random());
    ours = crc32c(piece, ours);
    its = extend_of_rocksdb(its, piece.data(), piece.size());
    all += piece;
    REQUIRE(ours == its);
  }
  CHECK(crc32c(all) == its);
}

}  // namespace ingot::storage
