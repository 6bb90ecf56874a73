// Where libFuzzer enters each of the fuzzers; INGOT_FUZZ_TARGET is the target's name.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ingot::fuzz::INGOT_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
