// The bytes of a stream's elements, which stream_value.h lists. Every value begins with the flag
// byte 0, then:
//
//   entry     field | value | field | value ..., each packed (packed.h)
//   group     u32le number | ID last delivered | i64le entries read | u64le pending | u32le
//   consumers
//             | u32le next consumer's number
//   consumer  u32le number | i64le seen (Unix ms) | u64le pending
//   pending   i64le delivered (Unix ms) | u64le deliveries | consumer's name
//   owned     nothing
//
//   notes     ID first | ID last | ID greatest deleted | u64le added | u32le groups | u32le next
//             group's number
//
// An ID is u64be ms | u64be seq. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/types/stream_value.h"
#include "storage/codec.h"

namespace ingot::types {

enum class StreamPart : char { kEntry = 0, kGroup = 1, kConsumer = 2, kPending = 3, kOwned = 4 };

// The key of everything of that part begins so; the parts' keys add what follows.
inline std::string stream_prefix(StreamPart part) {
  return std::string(1, static_cast<char>(part));
}

inline std::string entry_key(StreamId entry) {
  return stream_prefix(StreamPart::kEntry) + stream_id_bytes(entry);
}

// Takes the key with the collection's id, too.
inline StreamId entry_id(std::string_view entry_key) {
  return read_stream_id(entry_key.substr(entry_key.size() - kStreamIdBytes));
}

inline std::string group_key(std::string_view name) {
  return stream_prefix(StreamPart::kGroup).append(name);
}

// Everything of one group in a part.
inline std::string group_prefix(StreamPart part, uint32_t group) {
  std::string key = stream_prefix(part);
  storage::append_be32(&key, group);
  return key;
}

inline std::string consumer_key(uint32_t group, std::string_view name) {
  return group_prefix(StreamPart::kConsumer, group).append(name);
}

inline std::string pending_key(uint32_t group, StreamId entry) {
  return group_prefix(StreamPart::kPending, group) + stream_id_bytes(entry);
}

inline std::string owned_prefix(uint32_t group, uint32_t consumer) {
  std::string key = group_prefix(StreamPart::kOwned, group);
  storage::append_be32(&key, consumer);
  return key;
}

inline std::string owned_key(uint32_t group, uint32_t consumer, StreamId entry) {
  return owned_prefix(group, consumer) + stream_id_bytes(entry);
}

// The first key behind all that begin so; the prefix must not end in 0xff bytes only.
std::string prefix_end(std::string prefix);

inline constexpr size_t kNotesBytes = 3 * kStreamIdBytes + 8 + 4 + 4;
void encode_notes(const StreamNotes& notes, std::string* out);
// What follows the notes is left alone.
[[nodiscard]] bool decode_notes(std::string_view bytes, StreamNotes* notes);
// How many of a small stream's elements are entries; nothing when the bytes are no elements.
std::optional<uint64_t> count_entries(std::string_view packed);

// Of these, `stored` includes the flag byte; names that stand in the key are left alone.
std::string encode_group(const StreamGroup& group);
[[nodiscard]] bool decode_group(std::string_view stored, StreamGroup* group);
std::string encode_consumer(const StreamConsumer& consumer);
[[nodiscard]] bool decode_consumer(std::string_view stored, StreamConsumer* consumer);
std::string encode_pending(const StreamPending& pending);
[[nodiscard]] bool decode_pending(std::string_view stored, StreamPending* pending);

}  // namespace ingot::types
