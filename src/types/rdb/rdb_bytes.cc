// Reading dumps' lengths and strings with every length checked, and writing the shortest forms.
#include "src/types/rdb/rdb_bytes.h"

#include <charconv>

#include "src/types/rdb/rdb_lzf.h"
#include "storage/codec.h"

namespace ingot::types::rdb {

namespace {

constexpr uint8_t kLength32 = 0x80;
constexpr uint8_t kLength64 = 0x81;
constexpr uint8_t kEncoded = 0xc0;
enum : uint8_t { kInt8 = 0, kInt16 = 1, kInt32 = 2, kLzf = 3 };
constexpr size_t kIntegerTextMax = 11;  // longer text is never written as an integer
constexpr size_t kNotCompressedMax = 20;
constexpr size_t kCompressionGain = 4;  // that compressing must at least save

bool append_integer(std::string* out, std::string_view text) {
  if (text.size() > kIntegerTextMax) return false;
  const std::optional<int64_t> number = as_integer(text);
  if (!number || *number < INT32_MIN || *number > INT32_MAX) return false;
  const uint8_t encoding = *number >= INT8_MIN && *number <= INT8_MAX     ? kInt8
                           : *number >= INT16_MIN && *number <= INT16_MAX ? kInt16
                                                                          : kInt32;
  out->push_back(static_cast<char>(kEncoded | encoding));
  append_le(out, static_cast<uint64_t>(*number), size_t{1} << encoding);
  return true;
}

}  // namespace

std::optional<int64_t> as_integer(std::string_view text) {
  if (text.empty() || text.size() > 20) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text[0] == '-' ? text.substr(1) : text;
  if (digits[0] == '0' && text != "0") return std::nullopt;
  return value;
}

bool Input::take(size_t bytes, std::string_view* out) {
  if (bytes > rest_.size()) return run_out(bytes - rest_.size());
  *out = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return true;
}

bool Input::byte(uint8_t* value) {
  if (rest_.empty()) return run_out(1);
  *value = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return true;
}

bool Input::length_or_encoding(uint64_t* value, bool* encoded) {
  uint8_t first;
  if (!byte(&first)) return false;
  *encoded = false;
  std::string_view bytes;
  switch (first >> 6) {
    case 0:
      *value = first;
      return true;
    case 1: {
      uint8_t second;
      if (!byte(&second)) return false;
      *value = uint64_t{first & 0x3fu} << 8 | second;
      return true;
    }
    case 3:
      *encoded = true;
      *value = first & 0x3f;
      return true;
    default:
      break;
  }
  if (first == kLength32 && take(4, &bytes)) {
    *value = storage::read_be32(bytes);
    return true;
  }
  if (first == kLength64 && take(8, &bytes)) {
    *value = storage::read_be64(bytes);
    return true;
  }
  return false;
}

bool Input::length(uint64_t* value) {
  bool encoded;
  return length_or_encoding(value, &encoded) && !encoded;
}

bool Input::count(uint64_t* value, size_t bytes_each) {
  return length(value) && *value <= rest_.size() / bytes_each;
}

bool Input::plain_string(uint64_t* bytes) {
  const std::string_view before = rest_;
  bool encoded;
  if (length_or_encoding(bytes, &encoded) && !encoded) return true;
  rest_ = before;
  return false;
}

bool Input::compressed_lengths(uint64_t* packed, uint64_t* bytes) {
  return length(packed) && length(bytes) && *bytes != 0 && *bytes <= kStringBytesMax &&
         *packed <= kStringBytesMax && *packed >= *bytes / kLzfRatioMax;
}

bool Input::compressed_string(uint64_t* packed, uint64_t* bytes) {
  const std::string_view before = rest_;
  uint64_t encoding;
  bool encoded;
  if (length_or_encoding(&encoding, &encoded) && encoded && encoding == kLzf &&
      compressed_lengths(packed, bytes)) {
    return true;
  }
  rest_ = before;
  return false;
}

bool Input::string(std::string* out) {
  uint64_t bytes;
  bool encoded;
  if (!length_or_encoding(&bytes, &encoded)) return false;
  if (encoded) return encoded_string(bytes, out);
  std::string_view text;
  if (bytes > kStringBytesMax || !take(bytes, &text)) return false;
  out->assign(text);
  return true;
}

bool Input::encoded_string(uint64_t encoding, std::string* out) {
  if (encoding == kLzf) {
    uint64_t compressed, bytes;
    std::string_view text;
    if (!compressed_lengths(&compressed, &bytes)) return false;
    if (bytes > unpacked_left_) return too_large_ = true, false;
    unpacked_left_ -= bytes;
    return take(compressed, &text) && lzf_decompress(text, bytes, out);
  }
  int64_t value = 0;
  if (encoding == kInt8) {
    uint8_t number;
    if (!byte(&number)) return false;
    value = static_cast<int8_t>(number);  // NOLINT(bugprone-signed-char-misuse): a number
  } else if (encoding == kInt16) {
    uint16_t number;
    if (!le16(&number)) return false;
    value = static_cast<int16_t>(number);
  } else if (encoding == kInt32) {
    uint32_t number;
    if (!le32(&number)) return false;
    value = static_cast<int32_t>(number);
  } else {
    return false;
  }
  *out = std::to_string(value);
  return true;
}

void append_le(std::string* out, uint64_t value, size_t bytes) {
  for (; bytes > 0; --bytes, value >>= 8) out->push_back(static_cast<char>(value));
}

void append_length(std::string* out, uint64_t length) {
  if (length < 1u << 6) {
    out->push_back(static_cast<char>(length));
  } else if (length < 1u << 14) {
    out->push_back(static_cast<char>(0x40 | length >> 8));
    out->push_back(static_cast<char>(length));
  } else if (length <= UINT32_MAX) {
    out->push_back(static_cast<char>(kLength32));
    storage::append_be32(out, static_cast<uint32_t>(length));
  } else {
    out->push_back(static_cast<char>(kLength64));
    storage::append_be64(out, length);
  }
}

void append_string(std::string* out, std::string_view bytes, bool compress) {
  if (append_integer(out, bytes)) return;
  std::string compressed;
  if (compress && bytes.size() > kNotCompressedMax &&
      lzf_compress(bytes, bytes.size() - kCompressionGain, &compressed)) {
    out->push_back(static_cast<char>(kEncoded | kLzf));
    append_length(out, compressed.size());
    append_length(out, bytes.size());
    out->append(compressed);
    return;
  }
  append_length(out, bytes.size());
  out->append(bytes);
}

}  // namespace ingot::types::rdb
