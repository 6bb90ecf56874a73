// Appending lengths and byte strings.
#include "src/types/packed.h"

namespace ingot::types {

void append_varint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void append_packed(std::string* out, std::string_view item) {
  append_varint(out, item.size());
  out->append(item);
}

size_t packed_bytes(size_t length) {
  size_t bytes = 1 + length;
  for (; length >= 0x80; length >>= 7) ++bytes;
  return bytes;
}

}  // namespace ingot::types
