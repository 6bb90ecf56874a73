// Reading hashes, small and large, and taking out fields whose time has come.
#include "src/types/hash_value.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/types/collection.h"
#include "src/types/hash_bytes.h"
#include "src/types/member_table.h"
#include "src/types/packed.h"

namespace ingot::types {

using storage::Metadata;
using storage::Space;

void append_field_value(std::string* out, const FieldValue& value) {
  out->push_back(value.expire_ms == 0 ? storage::kPlainElement : kExpiringElement);
  if (value.expire_ms != 0) storage::append_le64(out, static_cast<uint64_t>(value.expire_ms));
  out->append(value.bytes);
}

bool decode_field_value(std::string_view stored, FieldValue* value) {
  if (stored.empty()) return false;
  const char form = stored.front();
  stored.remove_prefix(1);
  value->expire_ms = 0;
  if (form == kExpiringElement) {
    if (stored.size() < sizeof(uint64_t)) return false;
    value->expire_ms = static_cast<int64_t>(storage::read_le64(stored));
    stored.remove_prefix(sizeof(uint64_t));
  } else if (form != storage::kPlainElement) {
    return false;
  }
  value->bytes = stored;
  return true;
}

bool HashReader::get(std::string_view field, std::string* held, FieldValue* value) {
  bool found = false;
  if (is_large()) {
    MemberTable table(data_, record_.collection()->id);
    found = table.get(field, held);
    if (found && !decode_field_value(*held, value)) {
      data_.latch_error(corrupt_hash());
      return false;
    }
  } else {
    walk_packed(data_, record_.payload(), [&](std::string_view name, const FieldValue& its) {
      found = name == field;
      if (found) *value = its;
      return !found;
    });
  }
  return found && value->is_alive(now_ms_);
}

void HashReader::walk(const Each& each) {
  auto each_alive = [&](std::string_view field, const FieldValue& value) {
    return !value.is_alive(now_ms_) || each(field, value);
  };
  if (!is_large()) return walk_packed(data_, record_.payload(), each_alive);
  MemberTable table(data_, record_.collection()->id);
  table.walk([&](std::string_view field, std::string_view stored) {
    FieldValue value;
    if (decode_field_value(stored, &value)) return each_alive(field, value);
    data_.latch_error(corrupt_hash());
    return false;
  });
}

uint64_t HashReader::length() {
  if (is_large()) return record_.collection()->count - expired_of_large();
  uint64_t length = 0;
  walk([&](std::string_view, const FieldValue&) {
    ++length;
    return true;
  });
  return length;
}

uint64_t HashReader::expired_of_large() {
  const Metadata metadata = record_.metadata();
  if (metadata.element_expire_ms == 0 || metadata.element_expire_ms > now_ms_) return 0;
  const storage::CollectionId id = metadata.collection->id;
  const std::string begin = field_expiry_key(id, metadata.element_expire_ms, {});
  uint64_t expired = 0;
  const auto at =
      data_.cursor(Space::kOrder, begin, field_expiry_key(id, end_of_expired(now_ms_), {}));
  for (at->seek(begin); at->valid(); at->next()) ++expired;
  data_.check(*at);
  return std::min(expired, metadata.collection->count);
}

namespace {

constexpr size_t kExpiredAtOnce = 512;

// What is left of a small hash in `*left`, and the fields that are not in `*gone`.
Metadata without_expired(KeyWriter& keys, const Record& before, std::string* left,
                         std::vector<std::string>* gone) {
  Metadata after = before.metadata();
  after.element_expire_ms = 0;
  walk_packed(keys.data(), before.payload(), [&](std::string_view field, const FieldValue& value) {
    if (!value.is_alive(keys.now_ms())) {
      gone->emplace_back(field);
      return true;
    }
    append_field(left, field, value);
    note_expiry(&after, value.expire_ms);
    return true;
  });
  after.payload = *left;
  return after;
}

// The same of a large one, whose fields go here and now.
Metadata remove_expired(KeyWriter& keys, const Record& before, std::vector<std::string>* gone) {
  Metadata after = before.metadata();
  const storage::CollectionId id = after.collection->id;
  const std::string begin = field_expiry_key(id, after.element_expire_ms, {});
  std::vector<std::string> due;
  after.element_expire_ms = 0;
  {
    const auto at = keys.data().cursor(Space::kOrder, begin, storage::collection_end(id));
    for (at->seek(begin); at->valid(); at->next()) {
      const int64_t expire_ms = expiry_of(at->key());
      if (expire_ms > keys.now_ms() || due.size() == kExpiredAtOnce) {
        after.element_expire_ms = expire_ms;
        break;
      }
      due.emplace_back(at->key());
    }
    keys.data().check(*at);
  }
  for (const std::string& key : due) {
    remove_member(keys.overlay(), id, field_of_expiry(key));
    gone->emplace_back(field_of_expiry(key));
    keys.overlay().remove(Space::kOrder, key);
  }
  after.collection->count -= std::min<uint64_t>(due.size(), after.collection->count);
  revise(&after);
  return after;
}

}  // namespace

BuiltValue rest_of_hash(storage::Reader& data, const Record& record, int64_t now_ms,
                        const PutElement& put,
                        const std::function<bool(std::string_view field)>& goes) {
  uint64_t stored = 0;  // of the fields that go
  uint64_t alive = 0;
  BuiltValue rest = copy_collection(
      data, record, put, [&](Space space, std::string_view element, std::string_view value) {
        constexpr size_t kExpiryBytes = sizeof(uint64_t);
        if (space == Space::kOrder) {
          return !goes(element.substr(std::min(kExpiryBytes, element.size())));
        }
        if (!goes(member_of_element(element))) return true;
        FieldValue field;
        if (!decode_field_value(value, &field)) data.latch_error(corrupt_hash());
        ++stored;
        alive += field.is_alive(now_ms);
        return false;
      });
  rest.metadata.collection->count -= stored;
  rest.size = rest.metadata.collection->count;
  rest.changes = alive;
  return rest;
}

void expire_fields(KeyWriter& keys, int db, std::string_view key, const Record& before) {
  std::string left;
  std::vector<std::string> gone;
  const bool is_large = before.collection().has_value();
  const Metadata after =
      is_large ? remove_expired(keys, before, &gone) : without_expired(keys, before, &left, &gone);
  if (keys.data().failed()) return;
  const bool any_left = is_large ? after.collection->count != 0 : !left.empty();
  const bool fewer = is_large ? after.collection->count != before.collection()->count
                              : left.size() != before.payload().size();
  any_left ? keys.store(db, key, &before, after) : keys.remove(db, key, before);
  if (!gone.empty() && keys.tells_replicas()) {
    std::vector<std::string_view> words = {"HDEL", key};
    words.insert(words.end(), gone.begin(), gone.end());
    keys.effects().told.tell(db, words);
  }
  if (fewer) keys.notify(notify::kHash, "hexpired", db, key);
  if (!any_left) keys.notify(notify::kGeneric, "del", db, key);
}

}  // namespace ingot::types
