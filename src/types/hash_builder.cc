// Collecting fields in memory while they are few, then in a member table.
#include "src/types/hash_builder.h"

#include "src/types/hash_bytes.h"
#include "src/types/member_table.h"
#include "src/types/packed.h"

namespace ingot::types {

void HashBuilder::put(std::string_view field, const FieldValue& value) {
  std::string stored;
  append_field_value(&stored, value);
  put_(storage::Space::kData, member_element(field), stored);
  if (value.expire_ms == 0) return;
  std::string due;
  storage::append_be64(&due, static_cast<uint64_t>(value.expire_ms));
  put_(storage::Space::kOrder, due.append(field), {&storage::kPlainElement, 1});
}

void HashBuilder::add(std::string_view field, const FieldValue& value) {
  ++size_;
  note_expiry(&metadata_, value.expire_ms);
  if (field.size() > limits_.listpack_value_max ||
      value.bytes.size() > limits_.listpack_value_max || size_ > limits_.listpack_entries_max) {
    metadata_.limit_passed = true;
  }
  if (is_large_) return put(field, value);
  append_field(&packed_, field, value);
  if (packed_.size() <= limits_.inline_max_bytes) return;
  is_large_ = true;
  PackedReader small(packed_);
  FieldValue each;
  for (std::string_view name, stored; small.next(&name) && small.next(&stored);) {
    if (decode_field_value(stored, &each)) put(name, each);
  }
  packed_ = {};
}

BuiltValue HashBuilder::finish() {
  BuiltValue hash{.metadata = metadata_, .payload = std::move(packed_), .size = size_, .error = {}};
  if (is_large_) {
    hash.metadata.collection = storage::Metadata::Collection{.count = size_, .revision = 1};
  }
  return hash;
}

}  // namespace ingot::types
