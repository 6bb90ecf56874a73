// A HyperLogLog: 16384 registers that estimate how many different elements were added, in the very
// bytes that Redis keeps in a string.
//
//   bytes 0-3   "HYLL"
//   byte  4     0 dense, 1 sparse; 5-7 zero
//   bytes 8-15  the last estimate, little-endian; the highest bit: out of date
//   then        dense: 16384 registers of 6 bits, the lowest bits of a byte first
//               sparse: runs of registers, from the first to the last
//     00nnnnnn            n+1 registers that are 0
//     01nnnnnn nnnnnnnn   n+1 registers that are 0
//     1vvvvvnn            n+1 registers that are v+1
//
// Sparse bytes depend on the order in which runs were split and joined, so that is as Redis does
// it, too. Values; no thread rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::types {

inline constexpr unsigned kHllRegisters = 1u << 14;
using HllRegisters = std::array<uint8_t, kHllRegisters>;

// Ertl's improved estimator.
uint64_t hll_estimate(const HllRegisters& registers);

class HyperLogLog {
 public:
  HyperLogLog();  // empty and sparse
  // `bytes` must look like one.
  explicit HyperLogLog(std::string bytes) : bytes_(std::move(bytes)) {}

  // No string of more bytes is a sound HyperLogLog.
  static constexpr size_t kBytesMax = 16 + 2 * kHllRegisters;
  // Whether a string of `length` bytes that begins with `head` is one at first sight; `head` has
  // kHeadBytes of them, or all.
  static constexpr size_t kHeadBytes = 16;
  static bool looks_like(std::string_view head, uint64_t length);

  const std::string& bytes() const { return bytes_; }
  bool is_dense() const;

  // The estimate that the header keeps, unless it is out of date.
  std::optional<uint64_t> kept_estimate() const;
  void keep_estimate(uint64_t estimate);
  void forget_estimate();

  enum class Change : uint8_t { kNone, kDone, kCorrupt };
  // Sparse bytes that would grow beyond `sparse_bytes_max` become dense. A change makes the kept
  // estimate out of date.
  Change add(std::string_view element, uint64_t sparse_bytes_max);
  // Sets one register to `rank` if it is lower.
  Change raise(unsigned index, unsigned rank, uint64_t sparse_bytes_max);

  // False: corrupt, and unchanged.
  [[nodiscard]] bool make_dense();
  // Raises each of `*registers` to at least what it is here. False: corrupt.
  [[nodiscard]] bool merge_into(HllRegisters* registers) const;
  // The runs of a sparse one for people: "Z:1000 v:3,1 z:20".
  std::string describe_runs() const;

 private:
  Change raise_sparse(unsigned index, unsigned rank, uint64_t sparse_bytes_max);
  Change raise_dense(unsigned index, unsigned rank);
  void join_values(size_t at);

  std::string bytes_;
};

}  // namespace ingot::types
