// Counting and finding bits word by word, and reading, writing and adding to fields of bits.
#include "src/types/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ingot::types {

namespace {

__extension__ using Wide = __int128;

uint64_t load_word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

unsigned byte_at(std::string_view bytes, uint64_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

// The bits of a byte at and behind position `from`, which is below 8.
constexpr unsigned tail_mask(uint64_t from) {
  return 0xffu >> from;
}

}  // namespace

uint64_t count_ones(std::string_view bytes) {
  uint64_t ones = 0;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    ones += static_cast<uint64_t>(std::popcount(load_word(bytes.data() + at)));
  }
  for (; at < bytes.size(); ++at) ones += static_cast<uint64_t>(std::popcount(byte_at(bytes, at)));
  return ones;
}

uint64_t count_ones(std::string_view bytes, uint64_t from, uint64_t until) {
  if (from >= until) return 0;
  const uint64_t first = from / 8;
  const uint64_t end = (until + 7) / 8;
  uint64_t ones = count_ones(bytes.substr(first, end - first));
  ones -= static_cast<uint64_t>(std::popcount(byte_at(bytes, first) & ~tail_mask(from % 8)));
  if (until % 8 != 0) {
    ones -= static_cast<uint64_t>(std::popcount(byte_at(bytes, end - 1) & tail_mask(until % 8)));
  }
  return ones;
}

std::optional<uint64_t> find_bit(std::string_view bytes, bool bit, uint64_t from, uint64_t until) {
  const uint64_t dull_word = bit ? 0 : ~uint64_t{0};
  const unsigned flip = bit ? 0 : 0xff;
  uint64_t at = from / 8;
  unsigned mask = tail_mask(from % 8);
  while (at * 8 < until) {
    if (mask == 0xff && at + sizeof(uint64_t) <= bytes.size() &&
        load_word(bytes.data() + at) == dull_word) {
      at += sizeof(uint64_t);
      continue;
    }
    const unsigned wanted = (byte_at(bytes, at) ^ flip) & mask;
    if (wanted != 0) {
      const uint64_t found =
          at * 8 + static_cast<uint64_t>(std::countl_zero(static_cast<unsigned char>(wanted)));
      return found < until ? std::optional(found) : std::nullopt;
    }
    mask = 0xff;
    ++at;
  }
  return std::nullopt;
}

int64_t read_field(std::span<const char> bytes, unsigned at, FieldType type) {
  uint64_t value = 0;
  for (unsigned i = at; i < at + type.bits; ++i) {
    const unsigned byte = static_cast<unsigned char>(bytes[i / 8]);
    value = (value << 1) | ((byte >> (7 - i % 8)) & 1);
  }
  const unsigned unused = 64 - type.bits;
  if (!type.is_signed) return static_cast<int64_t>(value);
  return static_cast<int64_t>(value << unused) >> unused;
}

void write_field(std::span<char> bytes, unsigned at, FieldType type, int64_t value) {
  for (unsigned i = at + type.bits; i-- > at;) {
    const unsigned bit = 1u << (7 - i % 8);
    const unsigned byte = static_cast<unsigned char>(bytes[i / 8]);
    bytes[i / 8] = static_cast<char>((value & 1) != 0 ? byte | bit : byte & ~bit);
    value >>= 1;
  }
}

std::optional<int64_t> add_to_field(int64_t value, int64_t by, FieldType type, Overflow overflow) {
  const Wide reach = Wide{1} << (type.is_signed ? type.bits - 1 : type.bits);
  const Wide min = type.is_signed ? -reach : 0;
  const Wide max = reach - 1;
  const Wide sum = (type.is_signed ? Wide{value} : Wide{static_cast<uint64_t>(value)}) + by;
  if (sum >= min && sum <= max) return static_cast<int64_t>(sum);
  switch (overflow) {
    case Overflow::kFail:
      return std::nullopt;
    case Overflow::kSaturate: {
      // As in Redis, whose difference of `max` and such a value is not above 0 any more.
      const bool wraps = type.is_signed && type.bits < 64 && max - value > INT64_MAX;
      return static_cast<int64_t>(sum > max || wraps ? max : min);
    }
    case Overflow::kWrap:
      break;
  }
  const unsigned unused = 64 - type.bits;
  const uint64_t kept = static_cast<uint64_t>(sum) << unused;
  if (type.is_signed) return static_cast<int64_t>(kept) >> unused;
  return static_cast<int64_t>(kept >> unused);
}

}  // namespace ingot::types
