// Setting and removing fields of a hash, and its way from the key's record into a member table.
#include <utility>

#include "src/types/collection.h"
#include "src/types/hash_bytes.h"
#include "src/types/hash_value.h"
#include "src/types/member_table.h"

namespace ingot::types {

using storage::Metadata;
using storage::Space;

namespace {

constexpr std::string_view kMarker{"\0", 1};

}  // namespace

HashWriter::HashWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
                       const HashLimits& limits)
    : keys_(keys), db_(db), key_(key), before_(before), limits_(limits) {
  after_.type = storage::ValueType::kHash;
  if (before == nullptr) return;
  after_ = before->metadata();
  if (after_.collection) {
    count_ = after_.collection->count;
    return;
  }
  packed_ = before->payload();
  walk_packed(keys.data(), packed_, [&](std::string_view, const FieldValue&) {
    ++count_;
    return true;
  });
}

bool HashWriter::find_small(std::string_view field, Place* place, FieldValue* value) {
  PackedReader reader(packed_);
  std::string_view name;
  std::string_view stored;
  for (;;) {
    place->begin = reader.position();
    if (!reader.next(&name)) return false;
    place->value = reader.position();
    if (!reader.next(&stored)) return false;
    place->end = reader.position();
    if (name == field) return decode_field_value(stored, value);
  }
}

bool HashWriter::find_large(std::string_view field, std::string* held, FieldValue* value) {
  MemberTable table(keys_.data(), after_.collection->id);
  if (!table.get(field, held)) return false;
  if (decode_field_value(*held, value)) return true;
  keys_.data().latch_error(corrupt_hash());
  return false;
}

bool HashWriter::get(std::string_view field, std::string* held, FieldValue* value) {
  Place place;
  const bool found =
      after_.collection ? find_large(field, held, value) : find_small(field, &place, value);
  return found && is_alive(field, *value);
}

// Replicas are told of a field that has expired before it is taken for one that is not there.
bool HashWriter::is_alive(std::string_view field, const FieldValue& value) {
  const bool alive = value.is_alive(keys_.expired_by_ms());
  if (!alive && keys_.tells_replicas()) keys_.effects().told.tell(db_, {"HDEL", key_, field});
  return alive;
}

bool HashWriter::set(std::string_view field, const FieldValue& value) {
  Place place;
  std::string held;
  FieldValue old;
  bool stored;
  if (after_.collection) {
    stored = find_large(field, &held, &old);
    if (stored && old.expire_ms != 0 && old.expire_ms != value.expire_ms) {
      keys_.overlay().remove(Space::kOrder,
                             field_expiry_key(after_.collection->id, old.expire_ms, field));
    }
    put_large(field, value);
  } else {
    stored = find_small(field, &place, &old);
    set_small(field, value, stored ? &place : nullptr);
  }
  if (!stored) ++count_;
  note_expiry(&after_, value.expire_ms);
  if (field.size() > limits_.listpack_value_max ||
      value.bytes.size() > limits_.listpack_value_max || count_ > limits_.listpack_entries_max) {
    after_.limit_passed = true;
  }
  changed_ = true;
  if (!after_.collection && packed_.size() > limits_.inline_max_bytes) make_large();
  return !stored || !old.is_alive(keys_.expired_by_ms());
}

void HashWriter::set_small(std::string_view field, const FieldValue& value, const Place* place) {
  if (place == nullptr) return append_field(&packed_, field, value);
  std::string stored;
  append_field_value(&stored, value);
  std::string item;
  append_packed(&item, stored);
  packed_.replace(place->value, place->end - place->value, item);
}

void HashWriter::put_large(std::string_view field, const FieldValue& value) {
  const storage::CollectionId id = after_.collection->id;
  std::string stored;
  append_field_value(&stored, value);
  put_member(keys_.overlay(), id, field, stored);
  if (value.expire_ms == 0) return;
  keys_.overlay().put(Space::kOrder, field_expiry_key(id, value.expire_ms, field), kMarker);
}

void HashWriter::make_large() {
  after_.collection = Metadata::Collection{.id = keys_.new_collection()};
  walk_packed(keys_.data(), packed_, [&](std::string_view field, const FieldValue& value) {
    put_large(field, value);
    return true;
  });
  packed_.clear();
}

bool HashWriter::remove(std::string_view field) {
  std::string held;
  FieldValue old;
  Place place;
  if (after_.collection) {
    if (!find_large(field, &held, &old)) return false;
    const storage::CollectionId id = after_.collection->id;
    remove_member(keys_.overlay(), id, field);
    if (old.expire_ms != 0) {
      keys_.overlay().remove(Space::kOrder, field_expiry_key(id, old.expire_ms, field));
    }
  } else {
    if (!find_small(field, &place, &old)) return false;
    packed_.erase(place.begin, place.end - place.begin);
  }
  --count_;
  changed_ = true;
  return is_alive(field, old);
}

bool HashWriter::finish() {
  if (!changed_) return count_ != 0;
  if (count_ == 0) {
    if (before_ != nullptr) keys_.remove(db_, key_, *before_);
    return false;
  }
  if (after_.collection) {
    after_.collection->count = count_;
    after_.payload = {};
    revise(&after_);
  } else {
    after_.payload = packed_;
    if (std::exchange(after_.element_expire_ms, 0) != 0) {
      walk_packed(keys_.data(), packed_, [&](std::string_view, const FieldValue& value) {
        note_expiry(&after_, value.expire_ms);
        return true;
      });
    }
  }
  keys_.store(db_, key_, before_, after_);
  changed_ = false;
  return true;
}

}  // namespace ingot::types
