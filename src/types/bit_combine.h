// AND, OR, XOR and NOT of whole strings, chunk after chunk: what BITOP makes. A long result is made
// in the pool from a view and linked by the writer if the operands are still the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/command/context.h"
#include "src/types/fresh_collection.h"
#include "src/types/keyspace.h"

namespace ingot::types {

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

// A string as it was found; a missing key is an empty one.
struct BitOperand {
  std::optional<storage::Metadata::Collection> collection;
  std::string bytes;  // when it is inline

  BitOperand() = default;
  explicit BitOperand(const Record& record);
  uint64_t length() const { return collection ? collection->count : bytes.size(); }
  // Whether it is the same string with the same contents.
  bool is_same(const BitOperand& other) const;
};

// The result, computed where and when it is wanted. Shorter operands go on with zero bytes.
class BitCombination {
 public:
  BitCombination(BitOperation operation, std::vector<BitOperand> operands);

  uint64_t length() const { return length_; }
  uint64_t bytes_to_read() const { return bytes_to_read_; }
  const std::vector<BitOperand>& operands() const { return operands_; }

  // The bytes of one chunk of the result, in *out. Failed reads latch in `data`.
  void chunk(storage::Reader& data, uint64_t number, std::string* out) const;

 private:
  BitOperation operation_;
  std::vector<BitOperand> operands_;
  uint64_t length_ = 0;
  uint64_t bytes_to_read_ = 0;
};

// A result that stands in the engine already. Chunks of zero bytes are left out.
class CombinedString : public command::Prepared {
 public:
  CombinedString(exec::Services& services, BitCombination combination, storage::Reader& data);

  const storage::Status& status() const { return string_.status(); }
  bool built_from(const BitCombination& wanted) const;
  storage::Metadata::Collection collection() const {
    return {.id = string_.id(), .count = combination_.length()};
  }
  [[nodiscard]] bool link(KeyWriter& keys) { return string_.link(keys); }

 private:
  const BitCombination combination_;
  FreshCollection string_;
};

// For WriteContext::needs(): finds the operands under `keys` and builds.
command::Prepare prepare_combined(exec::Services& services, int db, BitOperation operation,
                                  std::vector<std::string> keys);

// The result written by the writer itself under an id that the caller stores a record for.
storage::Metadata::Collection add_combined(KeyWriter& keys, const BitCombination& combination);

}  // namespace ingot::types
