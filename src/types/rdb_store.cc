// See rdb_store.h.
#include "src/types/rdb_store.h"

#include "src/types/collection.h"
#include "src/types/list.h"
#include "src/types/string_value.h"

namespace ingot::types::rdb {

namespace {

String read_string_object(storage::Reader& data, const Record& record) {
  String string;
  read_string(data, record, 0, string_length(record), &string);
  return string;
}

List read_list_object(storage::Reader& data, const Record& record) {
  List list;
  ListReader(data, record).walk(0, [&](std::string_view element) {
    list.emplace_back(element);
    return true;
  });
  return list;
}

Set read_set_object(storage::Reader& data, const Record& record) {
  Set set{.members = {}, .compact = !record.limit_passed()};
  SetReader(data, record).walk([&](std::string_view member) {
    set.members.emplace_back(member);
    return true;
  });
  return set;
}

SortedSet read_sorted_set_object(storage::Reader& data, const Record& record) {
  SortedSet set{.members = {}, .compact = !record.limit_passed()};
  SortedSetReader(data, record).walk([&](std::string_view member, double score) {
    set.members.emplace_back(member, score);
    return true;
  });
  return set;
}

// When its fields expire is lost: version 10 has no place for it.
Hash read_hash_object(storage::Reader& data, const Record& record, int64_t now_ms) {
  Hash hash{.fields = {}, .compact = !record.limit_passed()};
  HashReader(data, record, now_ms).walk([&](std::string_view field, const HashValue& value) {
    hash.fields.emplace_back(field, value.bytes);
    return true;
  });
  return hash;
}

// Stores an object of each type under a key that is not there.
class Storing {
 public:
  Storing(KeyWriter& keys, int db, std::string_view key, const StoreLimits& limits)
      : keys_(keys), db_(db), key_(key), limits_(limits) {}

  bool operator()(const String& string) {
    store_string(keys_, db_, key_, nullptr, string, /*expire_ms=*/0);
    return true;
  }
  bool operator()(const List& list) {
    ListWriter writer(keys_, db_, key_, nullptr, limits_.set.inline_max_bytes);
    for (const std::string& element : list) writer.push(ListEnd::kRight, element);
    return writer.finish();
  }
  bool operator()(const Set& set) {
    SetWriter writer(keys_, db_, key_, nullptr, limits_.set);
    for (const std::string& member : set.members) writer.add(member);
    return writer.finish();
  }
  bool operator()(const Hash& hash) {
    HashLimits limits = limits_.hash;
    // Redis takes a packed hash as it comes, long values included.
    if (hash.compact) limits.listpack_value_max = UINT64_MAX;
    HashWriter writer(keys_, db_, key_, nullptr, limits);
    for (const auto& [field, value] : hash.fields) writer.set(field, {.bytes = value});
    return writer.finish();
  }
  bool operator()(const SortedSet& set) {
    SortedSetLimits limits = limits_.sorted_set;
    // As a packed hash.
    if (set.compact) limits.listpack_value_max = UINT64_MAX;
    SortedSetWriter writer(keys_, db_, key_, nullptr, limits);
    for (const auto& [member, score] : set.members) writer.put(member, score);
    return writer.finish();
  }
  bool operator()(const Stream&) { return false; }

 private:
  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const StoreLimits& limits_;
};

}  // namespace

std::optional<Object> read_object(storage::Reader& data, const Record& record, int64_t now_ms) {
  switch (record.type()) {
    case storage::ValueType::kString:
      return read_string_object(data, record);
    case storage::ValueType::kList:
      return read_list_object(data, record);
    case storage::ValueType::kSet:
      return read_set_object(data, record);
    case storage::ValueType::kHash:
      return read_hash_object(data, record, now_ms);
    case storage::ValueType::kSortedSet:
      return read_sorted_set_object(data, record);
    case storage::ValueType::kStream:
      break;
  }
  return std::nullopt;
}

bool store_object(KeyWriter& keys, int db, std::string_view key, const Object& object,
                  int64_t expire_ms, const StoreLimits& limits) {
  if (!std::visit(Storing(keys, db, key, limits), object)) return false;
  Record stored;
  if (expire_ms == 0 || !keys.peek(db, key, &stored)) return true;
  storage::Metadata metadata = stored.metadata();
  metadata.expire_ms = expire_ms;
  keys.store(db, key, &stored, metadata);
  return true;
}

}  // namespace ingot::types::rdb
