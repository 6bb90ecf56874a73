// AND, OR, XOR and NOT of whole strings, chunk after chunk: what BITOP makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "src/types/string_value.h"

namespace ingot::types {

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

// A string as it was found; a missing key is an empty one.
struct BitOperand {
  std::optional<StringChunks> chunks;
  std::string bytes;  // when it is inline
  uint64_t length = 0;

  BitOperand() = default;
  explicit BitOperand(const Record& record);
};

// The result, computed where and when it is wanted. Shorter operands go on with zero bytes.
class BitCombination {
 public:
  BitCombination(BitOperation operation, std::vector<BitOperand> operands);

  uint64_t length() const { return length_; }
  uint64_t bytes_to_read() const { return bytes_to_read_; }

  // The bytes of one chunk of the result, in *out. Failed reads latch in `data`.
  void chunk(storage::Reader& data, uint64_t number, std::string* out) const;

 private:
  BitOperation operation_;
  std::vector<BitOperand> operands_;
  uint64_t length_ = 0;
  uint64_t bytes_to_read_ = 0;
};

// The result as a value: inline while it is short, else its chunks, without those of zero bytes.
BuiltValue build_combination(storage::Reader& data, const BitCombination& combination,
                             const PutElement& put);

}  // namespace ingot::types
