// Byte strings packed one behind the other: what a small collection is inside its key's record.
// Each stands as its length (LEB128: seven bits a byte, the lowest first, bit 7 set in all but the
// last) and its bytes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::types {

void append_varint(std::string* out, uint64_t value);
// Takes the number off the front of `*bytes`; false when it is cut off.
[[nodiscard]] inline bool take_varint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void append_packed(std::string* out, std::string_view item);
// What append_packed() adds for an item of so many bytes.
size_t packed_bytes(size_t length);
inline size_t packed_bytes(std::string_view item) {
  return packed_bytes(item.size());
}

class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : bytes_(bytes), rest_(bytes) {}

  // The next item, which points into the bytes; false at the end and when the bytes are broken.
  [[nodiscard]] bool next(std::string_view* item) {
    if (rest_.empty() || broken_) return false;
    uint64_t length = 0;
    broken_ = !take_varint(&rest_, &length) || length > rest_.size();
    if (broken_) return false;
    *item = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  // Where the next item begins.
  size_t position() const { return bytes_.size() - rest_.size(); }
  bool broken() const { return broken_; }

 private:
  std::string_view bytes_;
  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace ingot::types
