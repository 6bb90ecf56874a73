// The bytes inside a hash, for hash.cc and hash_writer.cc. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "src/types/hash_value.h"
#include "src/types/packed.h"
#include "storage/status.h"

namespace ingot::types {

inline constexpr char kExpiringElement = 1;  // the other is storage::kPlainElement

inline storage::Status corrupt_hash() {
  return {storage::Status::Code::kCorruption, "unreadable field of a hash"};
}

inline std::string field_expiry_key(storage::CollectionId id, int64_t expire_ms,
                                    std::string_view field) {
  std::string key;
  storage::append_be64(&key, id);
  storage::append_be64(&key, static_cast<uint64_t>(expire_ms));
  key.append(field);
  return key;
}
inline int64_t expiry_of(std::string_view field_expiry_key) {
  return static_cast<int64_t>(storage::read_be64(field_expiry_key.substr(8)));
}
inline std::string_view field_of_expiry(std::string_view field_expiry_key) {
  return field_expiry_key.substr(16);
}
// The first time at which nothing has expired at `now_ms`.
inline int64_t end_of_expired(int64_t now_ms) {
  return now_ms == std::numeric_limits<int64_t>::max() ? now_ms : now_ms + 1;
}

inline void append_field(std::string* packed, std::string_view field, const FieldValue& value) {
  append_packed(packed, field);
  std::string stored;
  append_field_value(&stored, value);
  append_packed(packed, stored);
}

// Takes an expiry (0: none) into Metadata::element_expire_ms.
inline void note_expiry(storage::Metadata* metadata, int64_t expire_ms) {
  int64_t& first = metadata->element_expire_ms;
  if (expire_ms != 0 && (first == 0 || expire_ms < first)) first = expire_ms;
}

// Every field of a small hash, expired or not, until `each` returns false.
template <typename Each>
void walk_packed(storage::Reader& data, std::string_view packed, const Each& each) {
  PackedReader reader(packed);
  std::string_view field;
  std::string_view stored;
  FieldValue value;
  while (reader.next(&field)) {
    if (!reader.next(&stored) || !decode_field_value(stored, &value)) {
      return data.latch_error(corrupt_hash());
    }
    if (!each(field, value)) return;
  }
  if (reader.broken()) data.latch_error(corrupt_hash());
}

}  // namespace ingot::types
