// The checksums in the files of both engines. Values and pure functions; no thread rule.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "storage/crc32c.h"

namespace ingot::storage {

// CRC-32C as logs and LevelDB's tables store it: rotated right by 15, plus a constant.
class MaskedCrc {
 public:
  void add(std::string_view bytes) { crc_ = crc32c(bytes, crc_); }
  uint32_t value() const;

 private:
  uint32_t crc_ = 0;
};
uint32_t masked_crc(std::string_view bytes);

// What RocksDB's tables store: the low half of XXH3 of all bytes but the last, which is taken in by
// a multiplication.
class BlockXxh3 {
 public:
  BlockXxh3() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(std::string_view bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint32_t value(char last) const;

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace ingot::storage
