// Reading and writing the listpack and the intset.
#include "src/types/rdb/rdb_listpack.h"

#include <algorithm>

#include "src/types/rdb/rdb_bytes.h"

namespace ingot::types::rdb {

namespace {

constexpr size_t kHeaderBytes = 6;
constexpr uint8_t kEnd = 0xff;
constexpr size_t kCountUnknown = 65535;
// First bytes of an entry; those of few bits carry the number or length itself.
constexpr uint8_t kInt13 = 0xc0, kText6 = 0x80, kText12 = 0xe0, kText32 = 0xf0;
constexpr uint8_t kInt16 = 0xf1, kInt24 = 0xf2, kInt32 = 0xf3, kInt64 = 0xf4;

bool fits(int64_t number, int bits) {
  const int64_t limit = int64_t{1} << (bits - 1);
  return number >= -limit && number < limit;
}

size_t back_length_bytes(size_t length) {
  return length <= 127 ? 1 : length < 16383 ? 2 : length < 2097151 ? 3 : length < 268435455 ? 4 : 5;
}

std::string back_length(size_t length) {
  const size_t bytes = back_length_bytes(length);
  std::string out;
  for (size_t i = bytes; i-- > 0;) {
    const size_t bits = length >> (7 * i) & 127;
    out.push_back(static_cast<char>(i + 1 == bytes ? bits : bits | 128));
  }
  return out;
}

int64_t sign_extended(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

bool read_number(Input& in, size_t bytes, std::string* item) {
  std::string_view text;
  if (!in.take(bytes, &text)) return false;
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[i]);
  *item = std::to_string(sign_extended(value, static_cast<int>(8 * bytes)));
  return true;
}

bool read_text(Input& in, size_t bytes, std::string* item) {
  std::string_view text;
  if (!in.take(bytes, &text)) return false;
  item->assign(text);
  return true;
}

// What stands behind an entry's first byte.
bool read_entry(uint8_t first, Input& in, std::string* item) {
  uint8_t second;
  uint32_t length;
  if (first < 0x80) {
    *item = std::to_string(first);
    return true;
  }
  if (first < 0xc0) return read_text(in, first & 0x3f, item);
  if (first < 0xe0) {
    if (!in.byte(&second)) return false;
    *item = std::to_string(sign_extended(uint64_t{first & 0x1fu} << 8 | second, 13));
    return true;
  }
  if (first < 0xf0) {
    return in.byte(&second) && read_text(in, size_t{first & 0xfu} << 8 | second, item);
  }
  switch (first) {
    case kText32:
      return in.le32(&length) && read_text(in, length, item);
    case kInt16:
      return read_number(in, 2, item);
    case kInt24:
      return read_number(in, 3, item);
    case kInt32:
      return read_number(in, 4, item);
    case kInt64:
      return read_number(in, 8, item);
    default:
      return false;
  }
}

}  // namespace

ListpackWriter::ListpackWriter() : bytes_(kHeaderBytes, '\0') {}

void ListpackWriter::end_entry(size_t begin) {
  bytes_ += back_length(bytes_.size() - begin);
  ++count_;
}

void ListpackWriter::add(int64_t number) {
  const size_t begin = bytes_.size();
  const auto value = static_cast<uint64_t>(number);
  const auto wide = [&](uint8_t first, size_t bytes) {
    bytes_.push_back(static_cast<char>(first));
    append_le(&bytes_, value, bytes);
  };
  if (number >= 0 && number <= 127) {
    bytes_.push_back(static_cast<char>(number));
  } else if (fits(number, 13)) {
    bytes_.push_back(static_cast<char>(kInt13 | (value >> 8 & 0x1f)));
    bytes_.push_back(static_cast<char>(value));
  } else if (fits(number, 16)) {
    wide(kInt16, 2);
  } else if (fits(number, 24)) {
    wide(kInt24, 3);
  } else if (fits(number, 32)) {
    wide(kInt32, 4);
  } else {
    wide(kInt64, 8);
  }
  end_entry(begin);
}

void ListpackWriter::add(std::string_view text) {
  if (const std::optional<int64_t> number = as_integer(text)) return add(*number);
  const size_t begin = bytes_.size();
  if (text.size() < 1u << 6) {
    bytes_.push_back(static_cast<char>(kText6 | text.size()));
  } else if (text.size() < 1u << 12) {
    bytes_.push_back(static_cast<char>(kText12 | text.size() >> 8));
    bytes_.push_back(static_cast<char>(text.size()));
  } else {
    bytes_.push_back(static_cast<char>(kText32));
    append_le(&bytes_, text.size(), 4);
  }
  bytes_.append(text);
  end_entry(begin);
}

std::string ListpackWriter::finish() {
  bytes_.push_back(static_cast<char>(kEnd));
  std::string header;
  append_le(&header, bytes_.size(), 4);
  append_le(&header, std::min(count_, kCountUnknown), 2);
  bytes_.replace(0, kHeaderBytes, header);
  std::string out = std::move(bytes_);
  bytes_.assign(kHeaderBytes, '\0');
  count_ = 0;
  return out;
}

bool read_listpack(std::string_view bytes, Items* items, size_t items_max) {
  items->clear();
  Input in(bytes);
  uint32_t total;
  uint16_t count;
  if (!in.le32(&total) || !in.le16(&count) || total != bytes.size()) return false;
  uint8_t first;
  while (in.byte(&first)) {
    if (first == kEnd) {
      return in.left() == 0 && (count == kCountUnknown || count == items->size());
    }
    const size_t begin = in.left() + 1;
    if (items->size() == items_max) return false;
    if (!read_entry(first, in, &items->emplace_back())) return false;
    const std::string expected = back_length(begin - in.left());
    std::string_view back;
    if (!in.take(expected.size(), &back) || back != expected) return false;
  }
  return false;
}

bool read_intset(std::string_view bytes, Items* items, size_t items_max) {
  items->clear();
  Input in(bytes);
  uint32_t width, count;
  if (!in.le32(&width) || !in.le32(&count)) return false;
  if ((width != 2 && width != 4 && width != 8) || in.left() != uint64_t{width} * count)
    return false;
  int64_t before = 0;
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view text;
    if (items->size() == items_max || !in.take(width, &text)) return false;
    uint64_t value = 0;
    for (size_t j = width; j-- > 0;) value = value << 8 | static_cast<uint8_t>(text[j]);
    const int64_t number = sign_extended(value, static_cast<int>(8 * width));
    if (i > 0 && number <= before) return false;
    before = number;
    items->push_back(std::to_string(number));
  }
  return true;
}

std::string write_intset(const std::vector<int64_t>& numbers) {
  size_t width = 2;
  for (const int64_t number : numbers) {
    if (!fits(number, 32)) {
      width = 8;
    } else if (!fits(number, 16)) {
      width = std::max<size_t>(width, 4);
    }
  }
  std::string out;
  append_le(&out, width, 4);
  append_le(&out, numbers.size(), 4);
  for (const int64_t number : numbers) append_le(&out, static_cast<uint64_t>(number), width);
  return out;
}

}  // namespace ingot::types::rdb
