// For each type, reading a key into the plain model, and storing the model under a key.
#include "src/types/rdb/rdb_store.h"

#include <algorithm>

#include "src/types/collection.h"
#include "src/types/list_value.h"
#include "src/types/stream_value.h"
#include "src/types/string_value.h"

namespace ingot::types::rdb {

namespace {

// What may still be read of a value. Each walk ends where nothing is left.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : left_(bytes) {}

  bool take(uint64_t bytes) {
    constexpr uint64_t kElementBytes = 64;  // that an element of the model has beside its bytes
    exceeded_ = exceeded_ || bytes + kElementBytes > left_;
    if (!exceeded_) left_ -= bytes + kElementBytes;
    return !exceeded_;
  }
  bool exceeded() const { return exceeded_; }

 private:
  uint64_t left_;
  bool exceeded_ = false;
};

String read_string_object(storage::Reader& data, const Record& record, Budget& budget) {
  String string;
  if (!budget.take(string_length(record))) return string;
  read_string(data, record, 0, string_length(record), &string);
  return string;
}

List read_list_object(storage::Reader& data, const Record& record, Budget& budget) {
  List list;
  ListReader(data, record).walk(0, [&](std::string_view element) {
    list.emplace_back(element);
    return budget.take(element.size());
  });
  return list;
}

Set read_set_object(storage::Reader& data, const Record& record, Budget& budget) {
  Set set{.members = {}, .compact = !record.limit_passed()};
  SetReader(data, record).walk([&](std::string_view member) {
    set.members.emplace_back(member);
    return budget.take(member.size());
  });
  return set;
}

SortedSet read_sorted_set_object(storage::Reader& data, const Record& record, Budget& budget) {
  SortedSet set{.members = {}, .compact = !record.limit_passed()};
  SortedSetReader(data, record).walk([&](std::string_view member, double score) {
    set.members.emplace_back(member, score);
    return budget.take(member.size());
  });
  return set;
}

// When its fields expire is lost: version 10 has no place for it.
Hash read_hash_object(storage::Reader& data, const Record& record, int64_t now_ms, Budget& budget) {
  Hash hash{.fields = {}, .compact = !record.limit_passed()};
  HashReader(data, record, now_ms).walk([&](std::string_view field, const FieldValue& value) {
    hash.fields.emplace_back(field, value.bytes);
    return budget.take(field.size() + value.bytes.size());
  });
  return hash;
}

Stream::Group read_group(const StreamReader& reader, const StreamGroup& from, Budget& budget) {
  Stream::Group group{.name = from.name, .last_id = from.last, .entries_read = from.entries_read};
  reader.walk_consumers(from, [&](const StreamConsumer& consumer) {
    group.consumers.push_back({.name = consumer.name, .seen_ms = consumer.seen_ms});
    return budget.take(consumer.name.size());
  });
  reader.walk_pending(from, kStreamIdMin, [&](const StreamPending& pending) {
    const auto owner =
        std::ranges::lower_bound(group.consumers, pending.consumer, {}, &Stream::Consumer::name);
    group.pending.push_back({.id = pending.id,
                             .delivered_ms = pending.delivered_ms,
                             .deliveries = pending.deliveries,
                             .consumer = static_cast<size_t>(owner - group.consumers.begin())});
    return budget.take(0);
  });
  return group;
}

Stream read_stream_object(storage::Reader& data, const Record& record, Budget& budget) {
  const StreamReader reader(data, record);
  Stream stream{.last_id = reader.notes().last,
                .max_deleted_id = reader.notes().max_deleted,
                .entries_added = reader.notes().added};
  reader.walk(kStreamIdMin, kStreamIdMax, false, [&](StreamId id, const StreamFields& fields) {
    Stream::Entry& entry = stream.entries.emplace_back(Stream::Entry{.id = id, .fields = {}});
    PackedReader items = fields.items();
    for (std::string_view field, value; items.next(&field) && items.next(&value);) {
      entry.fields.emplace_back(field, value);
      if (!budget.take(field.size() + value.size())) break;
    }
    return budget.take(0);
  });
  reader.walk_groups([&](const StreamGroup& group) {
    stream.groups.push_back(read_group(reader, group, budget));
    return budget.take(0);
  });
  return stream;
}

// Stores an object of each type under a key that is not there.
class Storing {
 public:
  Storing(KeyWriter& keys, int db, std::string_view key, const StoreLimits& limits)
      : keys_(keys), db_(db), key_(key), limits_(limits) {}

  void operator()(const String& string) {
    store_string(keys_, db_, key_, nullptr, string, /*expire_ms=*/0);
  }
  void operator()(const List& list) {
    ListWriter writer(keys_, db_, key_, nullptr, limits_.set.inline_max_bytes);
    for (const std::string& element : list) writer.push(ListEnd::kRight, element);
    writer.finish();
  }
  void operator()(const Set& set) {
    SetWriter writer(keys_, db_, key_, nullptr, limits_.set);
    for (const std::string& member : set.members) writer.add(member);
    writer.finish();
  }
  void operator()(const Hash& hash) {
    HashLimits limits = limits_.hash;
    // Redis takes a packed hash as it comes, long values included.
    if (hash.compact) limits.listpack_value_max = UINT64_MAX;
    HashWriter writer(keys_, db_, key_, nullptr, limits);
    for (size_t i = 0; i < hash.fields.size(); ++i) {
      const auto& [field, value] = hash.fields[i];
      writer.set(field,
                 {.bytes = value, .expire_ms = hash.expire_ms.empty() ? 0 : hash.expire_ms[i]});
    }
    writer.finish();
  }
  void operator()(const SortedSet& set) {
    SortedSetLimits limits = limits_.sorted_set;
    // As a packed hash.
    if (set.compact) limits.listpack_value_max = UINT64_MAX;
    size_t longest = 0;
    for (const auto& [member, score] : set.members) longest = std::max(longest, member.size());
    // From the first one on: what Redis has packed has no -0.
    if (!stays_packed(limits, set.members.size(), longest)) limits.listpack_entries_max = 0;
    SortedSetWriter writer(keys_, db_, key_, nullptr, limits);
    for (const auto& [member, score] : set.members) writer.put(member, score);
    writer.finish();
  }
  void operator()(const Stream&) {}  // is read piece by piece (data/rdb_value.h)

 private:
  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const StoreLimits& limits_;
};

}  // namespace

std::optional<Object> read_object(storage::Reader& data, const Record& record, int64_t now_ms,
                                  uint64_t bytes_max) {
  Budget budget(bytes_max);
  const auto read = [&]() -> Object {
    switch (record.type()) {
      case storage::ValueType::kString:
        return read_string_object(data, record, budget);
      case storage::ValueType::kList:
        return read_list_object(data, record, budget);
      case storage::ValueType::kSet:
        return read_set_object(data, record, budget);
      case storage::ValueType::kHash:
        return read_hash_object(data, record, now_ms, budget);
      case storage::ValueType::kSortedSet:
        return read_sorted_set_object(data, record, budget);
      case storage::ValueType::kStream:
        return read_stream_object(data, record, budget);
    }
    return {};
  };
  Object object = read();
  if (budget.exceeded()) return std::nullopt;
  return object;
}

void store_object(KeyWriter& keys, int db, std::string_view key, const Object& object,
                  const StoreLimits& limits) {
  std::visit(Storing(keys, db, key, limits), object);
}

}  // namespace ingot::types::rdb
