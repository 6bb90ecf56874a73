// Whether a name has come before, in memory of a bounded size: "no" is certain, "yes" is to be
// looked into. A Bloom filter whose bits for one name stand in one cache line: with 64 bits a name,
// one of some ten million answers "yes" in error.
//
// One thread.
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ingot::data {

class SeenNames {
 public:
  // Up to so many names "yes" is as good as always right, and the bits stay in the processor's
  // caches. Of four times as many it errs with one of some hundred.
  static constexpr uint64_t kSureNamesMax = 256 << 10;

  explicit SeenNames(uint64_t expected)
      : lines_(std::clamp<uint64_t>(expected, 1, kSureNamesMax) / kNamesOfLine + 1) {}

  // Notes it, as one of so many families of names. True: it may have been noted before.
  bool note(std::string_view name, uint64_t family = 0) {
    const XXH128_hash_t hash = XXH3_128bits_withSeed(name.data(), name.size(), family);
    Line& line = lines_[hash.high64 % lines_.size()];
    bool seen = true;
    uint64_t rest = hash.low64;
    for (int bits = 0; bits < 7; ++bits, rest >>= 9) {
      uint64_t& word = line[rest >> 6 & 7];
      const uint64_t bit = uint64_t{1} << (rest & 63);
      seen = seen && (word & bit) != 0;
      word |= bit;
    }
    return seen;
  }

 private:
  using Line = std::array<uint64_t, 8>;
  static constexpr uint64_t kNamesOfLine = 8;
  std::vector<Line> lines_;
};

}  // namespace ingot::data
