// Bits of byte strings. Bit 0 is the highest bit of the first byte, as Redis counts. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ingot::types {

uint64_t count_ones(std::string_view bytes);
// The same of the bits [from, until), which lie within `bytes`.
uint64_t count_ones(std::string_view bytes, uint64_t from, uint64_t until);

// The first bit of [from, until) that is `bit`.
std::optional<uint64_t> find_bit(std::string_view bytes, bool bit, uint64_t from, uint64_t until);

// --- integers of any width at any bit, the highest bit first: what BITFIELD works on

struct FieldType {
  bool is_signed = false;
  unsigned bits = 1;  // up to 64 signed, 63 unsigned
};
enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

// The longest stretch of bytes that a field touches.
inline constexpr size_t kFieldBytesMax = 9;

// The field that begins at bit `at` of `bytes`, which holds all of it. A signed field is extended
// to 64 bits.
int64_t read_field(std::span<const char> bytes, unsigned at, FieldType type);
// Its low bits are written.
void write_field(std::span<char> bytes, unsigned at, FieldType type, int64_t value);

// `value` + `by` brought into the type's range; nothing when it passes the range under kFail.
// `value` counts as signed or unsigned as the type is.
std::optional<int64_t> add_to_field(int64_t value, int64_t by, FieldType type, Overflow overflow);

}  // namespace ingot::types
