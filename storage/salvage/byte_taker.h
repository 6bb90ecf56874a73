// Takes numbers and strings off the front of bytes that may be damaged: once they run out, or are
// no number, it has failed, and all that is taken then is zero or empty. A value; no thread rule.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/codec.h"

namespace ingot::storage {

class ByteTaker {
 public:
  explicit ByteTaker(std::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size()) return fail();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  uint8_t byte() {
    const std::string_view taken = take(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken[0]);
  }
  uint32_t le32() {
    const std::string_view taken = take(4);
    return taken.empty() ? 0 : read_le32(taken);
  }
  uint64_t le64() {
    const std::string_view taken = take(8);
    return taken.empty() ? 0 : read_le64(taken);
  }
  // LEB128: seven bits a byte, the lowest first, bit 7 set in all but the last.
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      if (failed_) return 0;
      value |= static_cast<uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }
  std::string_view sized() { return take(varint()); }  // its length before it

 private:
  std::string_view fail() {
    failed_ = true;
    rest_ = {};
    return {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace ingot::storage
