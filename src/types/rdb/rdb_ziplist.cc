// Readers for the packed forms that Redis wrote before version 7:
//
//   ziplist  u32le bytes in all | u32le where the last entry begins | u16le entries | entries | FF
//   entry    length of the entry before (one byte, or FE u32le) | what it is | its bytes
//   zipmap   u8 pairs (254: many) | length, field, length, u8 unused, value, unused bytes ... | FF
#include <cstdint>

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_listpack.h"
#include "storage/codec.h"

namespace ingot::types::rdb {

namespace {

constexpr uint8_t kEnd = 0xff;
constexpr uint8_t kLongLength = 0xfe;  // four bytes of length follow
constexpr size_t kZiplistHeaderBytes = 10;
constexpr size_t kCountUnknown = 65535;

bool read_text(Input& in, uint64_t bytes, std::string* item) {
  std::string_view text;
  if (!in.take(bytes, &text)) return false;
  item->assign(text);
  return true;
}

bool read_number(Input& in, size_t bytes, std::string* item) {
  std::string_view text;
  if (!in.take(bytes, &text)) return false;
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[i]);
  const int unused_bits = static_cast<int>(64 - 8 * bytes);
  *item = std::to_string(static_cast<int64_t>(value << unused_bits) >> unused_bits);
  return true;
}

bool read_entry(Input& in, std::string* item) {
  uint8_t first, second;
  std::string_view length;
  if (!in.byte(&first)) return false;
  switch (first >> 6) {
    case 0:
      return read_text(in, first, item);
    case 1:
      return in.byte(&second) && read_text(in, uint64_t{first & 0x3fu} << 8 | second, item);
    case 2:
      return in.take(4, &length) && read_text(in, storage::read_be32(length), item);
    default:
      break;
  }
  switch (first) {
    case 0xc0:
      return read_number(in, 2, item);
    case 0xd0:
      return read_number(in, 4, item);
    case 0xe0:
      return read_number(in, 8, item);
    case 0xf0:
      return read_number(in, 3, item);
    case 0xfe:
      return read_number(in, 1, item);
    default:
      if (first < 0xf1 || first > 0xfd) return false;
      *item = std::to_string(first - 0xf1);
      return true;
  }
}

}  // namespace

bool read_ziplist(std::string_view bytes, Items* items, size_t items_max) {
  items->clear();
  Input in(bytes);
  uint32_t total, tail;
  uint16_t count;
  if (!in.le32(&total) || !in.le32(&tail) || !in.le16(&count) || total != bytes.size())
    return false;
  uint64_t begin = kZiplistHeaderBytes;  // of the entry before
  uint8_t first;
  while (in.byte(&first)) {
    const uint64_t at = bytes.size() - in.left() - 1;
    if (first == kEnd) {
      return in.left() == 0 && tail == begin && (count == kCountUnknown || count == items->size());
    }
    uint32_t length_before = first;
    if (first == kLongLength && !in.le32(&length_before)) return false;
    if (length_before != at - begin) return false;
    begin = at;
    if (items->size() == items_max) return false;
    if (!read_entry(in, &items->emplace_back())) return false;
  }
  return false;
}

bool read_zipmap(std::string_view bytes, Items* items, size_t items_max) {
  items->clear();
  Input in(bytes);
  uint8_t count, first;
  if (!in.byte(&count)) return false;
  while (in.byte(&first)) {
    if (first == kEnd) {
      return in.left() == 0 && items->size() % 2 == 0 &&
             (count >= kLongLength || count == items->size() / 2);
    }
    uint32_t length = first;
    if (first == kLongLength && !in.le32(&length)) return false;
    uint8_t unused = 0;
    std::string_view padding;
    const bool value = items->size() % 2 == 1;
    if (items->size() == items_max || (value && !in.byte(&unused))) return false;
    if (!read_text(in, length, &items->emplace_back()) || !in.take(unused, &padding)) return false;
  }
  return false;
}

}  // namespace ingot::types::rdb
