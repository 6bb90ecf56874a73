// Masking CRCs and folding XXH3 to what stands in the files.
#include "storage/salvage/checksum.h"

#include <bit>

namespace ingot::storage {

uint32_t MaskedCrc::value() const {
  return std::rotr(crc_, 15) + 0xa282ead8u;
}

uint32_t masked_crc(std::string_view bytes) {
  MaskedCrc crc;
  crc.add(bytes);
  return crc.value();
}

uint32_t BlockXxh3::value(char last) const {
  constexpr uint32_t kFactor = 0x6b9083d9;
  return static_cast<uint32_t>(XXH3_64bits_digest(state_.get())) ^
         static_cast<uint8_t>(last) * kFactor;
}

}  // namespace ingot::storage
