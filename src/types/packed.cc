// Appending and taking lengths and byte strings.
#include "src/types/packed.h"

namespace ingot::types {

void append_varint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

bool take_varint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
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

bool PackedReader::next(std::string_view* item) {
  if (rest_.empty() || broken_) return false;
  uint64_t length = 0;
  broken_ = !take_varint(&rest_, &length) || length > rest_.size();
  if (broken_) return false;
  *item = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

}  // namespace ingot::types
