// One value of an RDB file that does not come as one string: taken element by element, and put into
// the engine meanwhile when it is large.
//
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/data/filling.h"
#include "src/data/services.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/rdb/rdb_store.h"

namespace ingot::data {

// Where a value goes. All of it outlives the value.
struct RdbPlace {
  Services& services;
  Filling& filling;
  const types::rdb::StoreLimits& limits;
  int db;
  std::string_view key;
  int64_t expire_ms;  // 0: never
  bool kept;          // false: it has expired, and is read over
};

class RdbValue {
 public:
  virtual ~RdbValue() = default;

  // Takes the next piece. False: `in` has run out, and the piece is to be tried again with more; or
  // it makes no sense. Requires !complete().
  [[nodiscard]] virtual bool take(types::rdb::Input& in) = 0;
  virtual bool complete() const = 0;
  // Of a complete one: makes it the key's value. False: there is nothing in it, so no key.
  virtual bool store() = 0;
  // Of one that was stored: false when a member stood there twice. May read all of it again.
  virtual bool is_sound() { return true; }
};

// Null: a value of this type comes as one string.
std::unique_ptr<RdbValue> begin_value(types::rdb::ObjectType type, const RdbPlace& place);
// A stream, which is put where `keys` lead to. Between two pieces its elements may be taken out of
// there: they are not read again.
struct StreamPlace {
  types::KeyWriter& keys;
  uint64_t inline_max_bytes;
  int db;
  std::string_view key;  // outlives the value
  int64_t expire_ms;     // 0: never
  bool kept;             // false: it has expired, and is read over
};
std::unique_ptr<RdbValue> begin_stream(types::rdb::ObjectType type, const StreamPlace& place);
// A string of so many bytes, which follow.
std::unique_ptr<RdbValue> begin_long_string(uint64_t bytes, const RdbPlace& place);
// The same, compressed to `packed` bytes.
std::unique_ptr<RdbValue> begin_compressed_string(uint64_t packed, uint64_t bytes,
                                                  const RdbPlace& place);

// Stores what was built under the place's filling.
bool store_built(const RdbPlace& place, const types::BuiltValue& value);

}  // namespace ingot::data
