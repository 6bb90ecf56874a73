// LZF, the compression that Redis uses inside its dumps. A stream of pieces:
//
//   000lllll                    l + 1 literal bytes follow
//   lllooooo oooooooo           l + 2 bytes (l = 1..6) from o + 1 bytes back
//   111ooooo llllllll oooooooo  l + 9 bytes from o + 1 bytes back
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::types::rdb {

// The same bytes as Redis makes; false, and *out of no meaning, unless at most `bytes_max` come
// out.
[[nodiscard]] bool lzf_compress(std::string_view in, size_t bytes_max, std::string* out);
enum class LzfStep : uint8_t { kTaken, kRanOut, kDamaged };
// How far back a piece may point.
inline constexpr size_t kLzfOffsetMax = 1 << 13;
// Appends to *out, which ends with what came before, what the piece at `*at` of `in` stands for, at
// most `bytes_max`, and moves `*at` behind it. kRanOut: nothing was done, the piece is not whole.
[[nodiscard]] LzfStep lzf_step(std::string_view in, size_t* at, size_t bytes_max, std::string* out);
// Replaces *out; false unless it comes to exactly `bytes`.
[[nodiscard]] bool lzf_decompress(std::string_view in, size_t bytes, std::string* out);
// No `in_bytes` decompress to more.
inline constexpr size_t kLzfRatioMax = 264;

}  // namespace ingot::types::rdb
