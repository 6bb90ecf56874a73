// The pieces that Redis' dumps are made of: lengths, strings, fixed-width numbers.
//
//   length  00llllll | 01llllll llllllll | 80 u32be | 81 u64be
//   string  length, bytes | C0 i8 | C1 i16le | C2 i32le | C3 length compressed, length, LZF bytes
//
// Pure. Nothing of what is read is trusted: a read past the end or an impossible piece fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::types::rdb {

inline constexpr uint64_t kStringBytesMax = 512u << 20;  // longer ones are taken for damage

// The number that a string spells exactly as it would be printed.
std::optional<int64_t> as_integer(std::string_view text);

// --- reading

class Input {
 public:
  // `unpacked_max`: what all compressed strings, and strings that are many, may come to in memory;
  // reading more than that fails.
  explicit Input(std::string_view bytes, uint64_t unpacked_max = UINT64_MAX)
      : rest_(bytes), unpacked_left_(unpacked_max) {}

  [[nodiscard]] bool take(size_t bytes, std::string_view* out);
  [[nodiscard]] bool byte(uint8_t* value);
  [[nodiscard]] bool le16(uint16_t* value) { return number(value); }
  [[nodiscard]] bool le32(uint32_t* value) { return number(value); }
  [[nodiscard]] bool le64(uint64_t* value) { return number(value); }
  [[nodiscard]] bool length(uint64_t* value);
  [[nodiscard]] bool string(std::string* out);
  // The length of a string that is neither a number nor compressed, whose bytes follow. False, and
  // nothing was taken, when it is another.
  [[nodiscard]] bool plain_string(uint64_t* bytes);
  // Of a compressed string the lengths of its pieces, which follow, and of what they stand for.
  // False, and nothing was taken, when it is none.
  [[nodiscard]] bool compressed_string(uint64_t* packed, uint64_t* bytes);
  // A number of elements that take at least `bytes_each` of what is left.
  [[nodiscard]] bool count(uint64_t* value, size_t bytes_each = 1);

  // So many strings are about to be held, or are held.
  [[nodiscard]] bool hold_strings(uint64_t count) {
    too_large_ = too_large_ || count > strings_max();
    if (!too_large_) unpacked_left_ -= count * sizeof(std::string);
    return !too_large_;
  }
  uint64_t strings_max() const { return unpacked_left_ / sizeof(std::string); }

  size_t left() const { return rest_.size(); }
  std::string_view rest() const { return rest_; }
  bool too_large() const { return too_large_; }  // reading failed because of unpacked_max
  bool ran_out() const { return ran_out_; }      // reading failed because the bytes end
  size_t missing() const { return missing_; }    // after that: how many more it needs at least

 private:
  template <typename Number>
  bool number(Number* value) {
    std::string_view bytes;
    if (!take(sizeof(Number), &bytes)) return false;
    *value = 0;
    for (size_t i = sizeof(Number); i-- > 0;) {
      *value = static_cast<Number>(*value << 8 | static_cast<uint8_t>(bytes[i]));
    }
    return true;
  }
  bool run_out(size_t missing) {
    ran_out_ = true;
    missing_ = missing;
    return false;
  }
  bool length_or_encoding(uint64_t* value, bool* encoded);
  bool compressed_lengths(uint64_t* packed, uint64_t* bytes);
  bool encoded_string(uint64_t encoding, std::string* out);

  std::string_view rest_;
  uint64_t unpacked_left_;
  bool too_large_ = false;
  bool ran_out_ = false;
  size_t missing_ = 0;
};

// --- writing

void append_length(std::string* out, uint64_t length);
// As Redis writes strings: short integers as such, longer ones compressed where that helps.
void append_string(std::string* out, std::string_view bytes, bool compress);
void append_le(std::string* out, uint64_t value, size_t bytes);

}  // namespace ingot::types::rdb
