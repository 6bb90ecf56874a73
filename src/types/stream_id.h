// The ID of a stream's entry: a time in milliseconds and a number within it. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::types {

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;
  auto operator<=>(const StreamId&) const = default;
};

inline constexpr StreamId kStreamIdMin{};
inline constexpr StreamId kStreamIdMax{UINT64_MAX, UINT64_MAX};
inline constexpr size_t kStreamIdBytes = 16;

// The nearest ID on either side; nothing beyond the ends.
std::optional<StreamId> id_after(StreamId id);
std::optional<StreamId> id_before(StreamId id);

std::string stream_id_text(StreamId id);  // "ms-seq"
// "ms-seq" or "ms", which gets the sequence number that is missing.
std::optional<StreamId> parse_stream_id(std::string_view text, uint64_t missing_seq);

// Big-endian, so that IDs keep their order.
std::string stream_id_bytes(StreamId id);
StreamId read_stream_id(std::string_view bytes);  // requires kStreamIdBytes

}  // namespace ingot::types
