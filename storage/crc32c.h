// CRC-32C, as the logs of both engines and LevelDB's tables have it, by the processor's own
// instruction where it has one. Pure functions; no thread rule.
#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::storage {

// Of `bytes` behind others, of which it is `before`.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace ingot::storage
