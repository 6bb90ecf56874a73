// What all collections have in common: finding one under its key, storing it after a change.
#pragma once

#include <functional>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"

namespace ingot::types {

enum class Found : uint8_t { kAbsent, kYes, kWrongType };

// What stands under a key, when a value of that type is expected.
inline Found find_as(KeyReader& keys, int db, std::string_view key, storage::ValueType type,
                     Record* record) {
  if (!keys.find(db, key, record)) return Found::kAbsent;
  return record->type() == type ? Found::kYes : Found::kWrongType;
}

// The next revision; whatever changes the contents of a collection takes it.
inline void revise(storage::Metadata* metadata) {
  if (metadata->collection) ++metadata->collection->revision;
}

// OBJECT ENCODING in Redis' words. Which form the value has here does not matter: the limits of
// Redis' compact forms (*-max-listpack-*, set-max-intset-entries) are applied as it changes, and
// Metadata::limit_passed remembers that one was passed.
std::string_view encoding_name(const Record& record);

// A value with the same contents, whatever it is.
BuiltValue copy_value(storage::Reader& data, const Record& source, const PutElement& put);
// The same of a collection without some of its records. Neither its count nor what the type notes
// is changed.
using KeepRecord =
    std::function<bool(storage::Space space, std::string_view element, std::string_view record)>;
BuiltValue copy_collection(storage::Reader& data, const Record& source, const PutElement& put,
                           const KeepRecord& keep);

}  // namespace ingot::types
