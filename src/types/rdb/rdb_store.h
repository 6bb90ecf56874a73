// Between what a key holds on disk and the plain model that Redis' dumps are made of. Each type has
// its two functions here. One thread at a time; failures latch in the Reader.
#pragma once

#include <string_view>

#include "src/types/hash_value.h"
#include "src/types/keyspace.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_value.h"

namespace ingot::types::rdb {

// What the record's key holds at `now_ms`, whole; nothing when that takes more than `bytes_max`.
std::optional<Object> read_object(storage::Reader& data, const Record& record, int64_t now_ms,
                                  uint64_t bytes_max);

struct StoreLimits {
  HashLimits hash;
  SetLimits set;
  SortedSetLimits sorted_set;
};

// Makes the object, which is no stream, the value of a key that is not there, for ever.
void store_object(KeyWriter& keys, int db, std::string_view key, const Object& object,
                  const StoreLimits& limits);

}  // namespace ingot::types::rdb
