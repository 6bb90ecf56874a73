// What stands in an RDB file where a value's type could: all that is not a key. Pure.
#pragma once

#include <cstdint>

namespace ingot::types::rdb {

enum Opcode : uint8_t {
  kSlotInfo = 244,
  kFunction = 245,
  kFunctionEarly = 246,  // of release candidates of version 7.0
  kModuleAux = 247,
  kIdle = 248,
  kFrequency = 249,
  kAux = 250,
  kResize = 251,
  kExpireMs = 252,
  kExpireSeconds = 253,
  kSelect = 254,
  kEnd = 255,
};

}  // namespace ingot::types::rdb
