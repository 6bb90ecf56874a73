// ISA-L's CRC, and in RocksDB its place taken: Debian's build computes each log record's from
// tables.
#include "storage/crc32c.h"

#include <isa-l/crc.h>

#include <cstddef>

namespace ingot::storage {

uint32_t crc32c(std::string_view bytes, uint32_t before) {
  constexpr size_t kPieceMax = 1 << 30;  // lengths are ints there
  uint32_t left = ~before;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceMax);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));  // only read
    left = crc32_iscsi(data, static_cast<int>(piece.size()), left);
    bytes.remove_prefix(piece.size());
  }
  return ~left;
}

// Where RocksDB calls rocksdb::crc32c::Extend() the linker puts this (--wrap, CMakeLists.txt).
uint32_t extend(uint32_t before, const char* data,
                size_t bytes) asm("__wrap__ZN7rocksdb6crc32c6ExtendEjPKcm");
uint32_t extend(uint32_t before, const char* data, size_t bytes) {
  return crc32c({data, bytes}, before);
}

}  // namespace ingot::storage
