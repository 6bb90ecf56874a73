// What a hash is on disk. A small one stands in its key's record: field, value, field, value ...
// packed (packed.h) in the order in which they were added. One that would pass the limit becomes
// large for good: its fields are the members of a MemberTable. A field's value is in both forms
//
//   0 | value      or      1 | u64le expires at (Unix ms) | value
//
// and of a large hash every field that expires has, in the order space, an entry under its time:
//
//   collection id (u64be) | expires at (u64be) | field  ->  0
//
// Metadata::element_expire_ms is never after the first of these times. A field that has expired is
// not there for readers; it is removed when a write meets it or when the expiry index fires.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "storage/codec.h"

namespace ingot::types {

struct FieldValue {
  std::string_view bytes;
  int64_t expire_ms = 0;  // Unix; 0: never
  bool is_alive(int64_t now_ms) const { return expire_ms == 0 || expire_ms > now_ms; }
};

void append_field_value(std::string* out, const FieldValue& value);
// False when `stored` is none; the value points into it.
[[nodiscard]] bool decode_field_value(std::string_view stored, FieldValue* value);

// Sees the fields that have not expired at `now_ms`.
class HashReader {
 public:
  // Requires a hash or no record; both must outlive this.
  HashReader(storage::Reader& data, const Record& record, int64_t now_ms)
      : data_(data), record_(record), now_ms_(now_ms) {}

  bool is_large() const { return record_.collection().has_value(); }
  uint64_t length();
  // The value points into `*held` or the record.
  bool get(std::string_view field, std::string* held, FieldValue* value);

  // Calls `each` with every field until it returns false: in the order of insertion while small.
  using Each = std::function<bool(std::string_view field, const FieldValue& value)>;
  void walk(const Each& each);

 private:
  uint64_t expired_of_large();

  storage::Reader& data_;
  const Record& record_;
  const int64_t now_ms_;
};

// When a hash takes its other forms: in Ingot, and as OBJECT ENCODING tells.
struct HashLimits {
  uint64_t inline_max_bytes;
  uint64_t listpack_entries_max;
  uint64_t listpack_value_max;
};

// Changes one hash; finish() makes the changes its key's record.
class HashWriter {
 public:
  // `before` is what find() gave, or null for a hash to be made; it and `key` must outlive this.
  HashWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
             const HashLimits& limits);

  // As HashReader::get(); the value is good until the next change.
  bool get(std::string_view field, std::string* held, FieldValue* value);
  // True when the field was not there.
  bool set(std::string_view field, const FieldValue& value);
  // True when the field was there.
  bool remove(std::string_view field);
  // Stores what has changed. False when no field is left, and so no key.
  bool finish();

 private:
  struct Place {  // in packed_
    size_t begin, value, end;
  };
  bool find_small(std::string_view field, Place* place, FieldValue* value);
  bool find_large(std::string_view field, std::string* held, FieldValue* value);
  void set_small(std::string_view field, const FieldValue& value, const Place* place);
  void put_large(std::string_view field, const FieldValue& value);
  void make_large();
  bool is_alive(std::string_view field, const FieldValue& value);

  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const Record* const before_;
  const HashLimits limits_;
  storage::Metadata after_;
  std::string packed_;  // the small form
  uint64_t count_ = 0;  // fields stored, expired ones included
  bool changed_ = false;
};

// What is left of a large hash without the fields that go. `changes` counts those that had not
// expired.
BuiltValue rest_of_hash(storage::Reader& data, const Record& record, int64_t now_ms,
                        const PutElement& put,
                        const std::function<bool(std::string_view field)>& goes);

// Removes fields that have expired, not more than some hundreds at once, and the key with its last
// field. Requires a hash that find() gave.
void expire_fields(KeyWriter& keys, int db, std::string_view key, const Record& before);

}  // namespace ingot::types
