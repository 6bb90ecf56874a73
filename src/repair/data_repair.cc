// First what the records of the whole server say, then each key with its value, then what nobody
// owns.
#include "src/repair/data_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/types/digest.h"
#include "storage/codec.h"
#include "storage/reader.h"

namespace ingot::repair {

using storage::CollectionId;
using storage::GarbageKind;
using storage::KeyspaceId;
using storage::Space;
using storage::Status;

namespace {

constexpr size_t kIdBytes = 8;
constexpr size_t kBatchBytes = 1 << 20;
constexpr uint64_t kIdBlock = 1 << 16;  // ids are reserved in such blocks
// The owners of collections: id (u64be) -> sequence of the key's record (u64le), in a space of the
// scratch engine that nothing was gathered in.
constexpr Space kOwners = Space::kExpiry;

std::string_view type_name(storage::ValueType type) {
  switch (type) {
    case storage::ValueType::kString:
      return "string";
    case storage::ValueType::kList:
      return "list";
    case storage::ValueType::kSet:
      return "set";
    case storage::ValueType::kSortedSet:
      return "sorted set";
    case storage::ValueType::kHash:
      return "hash";
    case storage::ValueType::kStream:
      return "stream";
  }
  return "value";
}

std::string owner_key(CollectionId id) {
  std::string key;
  storage::append_be64(&key, id);
  return key;
}

}  // namespace

DataRepair::DataRepair(storage::Salvage& salvage, storage::Engine& target,
                       std::function<void(const std::string&)> lost)
    : salvage_(salvage),
      records_(salvage.records()),
      target_(target),
      lost_(std::move(lost)),
      batch_(target.new_batch()) {}

Status DataRepair::run() {
  if (Status status = read_system(); !status.ok()) return status;
  read_garbage();
  find_databases();
  tell_losses();
  find_owners();
  for (const auto& [keyspace, database] : database_of_) copy_keyspace(keyspace);
  tell_lost_keys();
  write_system();
  commit();
  note(records_.status());
  if (status_.ok()) note(target_.flush());
  if (status_.ok()) note(target_.sync());
  return status_;
}

Status DataRepair::read_system() {
  std::optional<uint32_t> version;
  records_.walk(Space::kSystem, {}, {},
                [&](std::string_view key, uint64_t, std::string_view value) {
                  if (key == storage::version_key() && value.size() == 4) {
                    version = storage::read_le32(value);
                  } else if (key == storage::next_keyspace_key() && value.size() == 4) {
                    next_keyspace_ = std::max(next_keyspace_, storage::read_le32(value));
                  } else if (key.size() == 5 && key[0] == 'd' && value.size() == 4) {
                    databases_[storage::read_be32(key.substr(1))] = storage::read_le32(value);
                  } else if (key.starts_with(storage::named_key("replication"))) {
                    // What may have been lost is not the data of that place.
                  } else if (key.starts_with(storage::named_key({}))) {
                    put(Space::kSystem, key, value);
                  }
                  return true;
                });
  std::string why = version ? storage::version_error(*version) : std::string();
  if (!why.empty()) return {Status::Code::kInvalid, std::move(why)};
  return records_.status();
}

void DataRepair::read_garbage() {
  records_.walk(Space::kGarbage, {}, {}, [&](std::string_view key, uint64_t, std::string_view) {
    GarbageKind kind;
    uint64_t id = 0;
    if (storage::decode_garbage_key(key, &kind, &id) && kind == GarbageKind::kKeyspace) {
      dead_.insert(static_cast<KeyspaceId>(id));
    }
    return true;
  });
}

// Which database a keyspace is. One that the system records do not name, and that was not flushed,
// has lost its record: it gets the first database that is free.
void DataRepair::find_databases() {
  std::map<KeyspaceId, uint32_t> named;
  for (const auto& [database, keyspace] : databases_) named[keyspace] = database;
  std::vector<KeyspaceId> unknown;
  std::set<uint32_t> taken;
  for (std::string from;;) {
    const std::string key = records_.first_key(Space::kMeta, from, {});
    if (key.size() < 4) break;
    if ((storage::read_be32(key) & storage::kMarkersBit) != 0) break;
    const KeyspaceId id = storage::read_be32(key);
    if (const auto found = named.find(id); found != named.end()) {
      database_of_[id] = found->second;
      taken.insert(found->second);
    } else if (id < storage::kFirstFreeKeyspace && !databases_.contains(id) &&
               !dead_.contains(id)) {
      database_of_[id] = id;
      taken.insert(id);
    } else if (!dead_.contains(id)) {
      unknown.push_back(id);
    }
    from = storage::meta_key_end(id);
    if (from.empty()) break;
  }
  uint32_t free = 0;
  for (const KeyspaceId id : unknown) {
    while (taken.contains(free)) ++free;
    taken.insert(free);
    databases_[free] = id;
    database_of_[id] = free;
    lost_(fmt::format("which database the keys of keyspace {} were in: they are in database {} now",
                      id, free));
  }
  for (const auto& [database, keyspace] : databases_) {
    next_keyspace_ = std::max(next_keyspace_, keyspace + 1);
  }
}

void DataRepair::tell_losses() {
  for (const storage::Loss& loss : salvage_.losses()) tell_range(loss);
}

void DataRepair::tell_range(const storage::Loss& loss) {
  if (!loss.space) return lost_(loss.what);
  switch (*loss.space) {
    case Space::kMeta:
      return lost_(fmt::format("{}: keys{}{} that stood there are lost, or as they were before",
                               loss.what,
                               loss.after.empty() ? "" : " behind " + name_of(loss.after),
                               loss.until ? " up to " + name_of(*loss.until) : ""));
    case Space::kData: {
      const auto id = [](std::string_view key) {
        return key.size() < kIdBytes ? 0 : storage::read_be64(key);
      };
      const CollectionId first = id(loss.after);
      const std::string which = !loss.until ? fmt::format("s {} and later", first)
                                : first == id(*loss.until)
                                    ? fmt::format(" {}", first)
                                    : fmt::format("s {} to {}", first, id(*loss.until));
      return lost_(
          fmt::format("{}: elements of the collection{} that stood there are lost, or as "
                      "they were before",
                      loss.what, which));
    }
    default:
      return lost_(fmt::format("{}: records of the space '{}' that stood there are lost", loss.what,
                               storage::space_name(*loss.space)));
  }
}

// A collection is one key's. If an older record names it as well, that key was renamed, moved or
// removed, and the record that said so is lost.
void DataRepair::find_owners() {
  storage::Engine& scratch = records_.engine();
  const auto batch = scratch.new_batch();
  const auto write = [&] {
    records_.note(scratch.write(*batch, storage::Durability::kBuffered));
    batch->clear();
  };
  std::map<CollectionId, uint64_t> held;  // not written yet
  records_.walk(Space::kMeta, {}, storage::meta_key(storage::kMarkersBit, {}),
                [&](std::string_view, uint64_t sequence, std::string_view value) {
                  storage::Metadata metadata;
                  if (!storage::decode_metadata(value, &metadata) || !metadata.collection)
                    return true;
                  const CollectionId id = metadata.collection->id;
                  std::string known;
                  uint64_t newest = sequence;
                  if (scratch.get(nullptr, kOwners, owner_key(id), storage::Tier::kDisk, &known,
                                  nullptr) == storage::Lookup::kFound &&
                      known.size() == 8) {
                    newest = std::max(newest, storage::read_le64(known));
                  }
                  uint64_t& owner = held[id];
                  owner = std::max(owner, newest);
                  std::string record;
                  storage::append_le64(&record, owner);
                  batch->put(kOwners, owner_key(id), record);
                  if (batch->bytes() < kBatchBytes) return true;
                  write();
                  held.clear();
                  return true;
                });
  write();
}

bool DataRepair::is_owner(CollectionId id, uint64_t sequence) {
  std::string owner;
  return records_.engine().get(nullptr, kOwners, owner_key(id), storage::Tier::kDisk, &owner,
                               nullptr) != storage::Lookup::kFound ||
         owner.size() != 8 || storage::read_le64(owner) <= sequence;
}

void DataRepair::copy_keyspace(KeyspaceId keyspace) {
  records_.walk(Space::kMeta, storage::meta_key(keyspace, {}), storage::meta_key_end(keyspace),
                [&](std::string_view key, uint64_t sequence, std::string_view value) {
                  copy_key(keyspace, key, sequence, value);
                  return status_.ok();
                });
}

void DataRepair::copy_key(KeyspaceId keyspace, std::string_view key, uint64_t sequence,
                          std::string_view value) {
  const std::string_view user_key = storage::user_key_of(key);
  types::Record record;
  if (!record.assign(std::string(value)) || !is_readable(record)) {
    return lost_(name_of(keyspace, user_key) + ": its record is unreadable");
  }
  types::BuiltValue made{.metadata = record.metadata(), .payload = std::string(record.payload())};
  if (record.collection()) {
    if (!is_owner(record.collection()->id, sequence)) return;
    const std::string name = fmt::format("{} ({}, collection {})", name_of(keyspace, user_key),
                                         type_name(record.type()), record.collection()->id);
    if (!make_value(name, record, &made)) return;
  }
  for (const storage::Loss& loss : salvage_.losses()) {
    if (!loss.is_narrow || !loss.concerns(Space::kMeta, key, sequence)) continue;
    lost_(name_of(keyspace, user_key) + ": it may be older than what stood there, or removed");
    break;
  }
  storage::Metadata after = made.record();
  const int64_t first = after.element_expire_ms == 0 ? after.expire_ms
                        : after.expire_ms == 0       ? after.element_expire_ms
                                               : std::min(after.expire_ms, after.element_expire_ms);
  if (first != 0 && (after.indexed_ms == 0 || after.indexed_ms > first)) after.indexed_ms = first;
  if (after.indexed_ms != 0) {
    put(Space::kExpiry, storage::expiry_key(after.indexed_ms, keyspace, user_key),
        {&storage::kPlainElement, 1});
  }
  std::string bytes;
  storage::encode_metadata(after, &bytes);
  put(Space::kMeta, key, bytes);
  storage::KeyCounts& counts = counts_[keyspace];
  ++counts.keys;
  counts.expires += after.expire_ms != 0;
  if (after.collection) {
    put(Space::kMeta, storage::marker_key(keyspace, user_key),
        storage::encode_marker(after.collection->id));
    ++counts.collections;
  }
  ++keys_;
}

// Whether a small value is one; of a large one its elements are looked at.
bool DataRepair::is_readable(const types::Record& record) {
  if (record.collection()) return true;
  storage::EngineReader reader(target_, nullptr, storage::Tier::kDisk);
  types::value_digest(reader, record);  // reads all of it
  return !reader.failed();
}

// False when nothing is left of it.
bool DataRepair::make_value(const std::string& name, const types::Record& record,
                            types::BuiltValue* made) {
  const CollectionId id = next_id_++;
  const std::string prefix = storage::collection_begin(id);
  const types::PutElement put_element = [&](Space space, std::string_view element,
                                            std::string_view value) {
    put(space, std::string(prefix).append(element), value);
  };
  RepairedValue repaired = CollectionRepair(salvage_, record, put_element).make();
  for (const std::string& piece : repaired.lost) lost_(fmt::format("{}: {}", name, piece));
  if (repaired.value.size == 0) return false;
  *made = std::move(repaired.value);
  made->metadata.collection->id = id;
  return true;
}

// Elements whose key is lost.
void DataRepair::tell_lost_keys() {
  for (std::string from;;) {
    const std::string key = records_.first_key(Space::kData, from, {});
    if (key.size() < kIdBytes) break;
    const CollectionId id = storage::read_be64(key);
    from = storage::collection_end(id);
    std::string found;
    bool is_garbage = false;
    records_.walk(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, id),
                  storage::garbage_key(GarbageKind::kCollection, id + 1),
                  [&](std::string_view, uint64_t, std::string_view) {
                    is_garbage = true;
                    return false;
                  });
    if (!is_garbage && records_.engine().get(nullptr, kOwners, owner_key(id), storage::Tier::kDisk,
                                             &found, nullptr) == storage::Lookup::kAbsent) {
      uint64_t elements = 0;
      records_.walk(Space::kData, storage::collection_begin(id), from,
                    [&](std::string_view, uint64_t, std::string_view) { return ++elements > 0; });
      lost_(fmt::format("collection {}: {} elements of a key that is lost, or had been removed", id,
                        elements));
    }
    if (from.empty()) break;
  }
}

void DataRepair::write_system() {
  std::string record;
  storage::append_le32(&record, storage::kFormatVersion);
  put(Space::kSystem, storage::version_key(), record);
  for (const auto& [database, keyspace] : databases_) {
    record.clear();
    storage::append_le32(&record, keyspace);
    put(Space::kSystem, storage::database_key(database), record);
  }
  record.clear();
  storage::append_le32(&record, next_keyspace_);
  put(Space::kSystem, storage::next_keyspace_key(), record);
  record.clear();
  storage::append_le64(&record, (next_id_ / kIdBlock + 1) * kIdBlock);
  put(Space::kSystem, storage::reserved_ids_key(), record);
  for (const auto& [keyspace, counts] : counts_) {
    storage::encode_counts(counts, &record);
    put(Space::kSystem, storage::counts_key(keyspace), record);
  }
}

std::string DataRepair::name_of(KeyspaceId keyspace, std::string_view user_key) const {
  const auto database = database_of_.find(keyspace);
  if (database == database_of_.end()) return fmt::format("keyspace {}, {:?}", keyspace, user_key);
  return fmt::format("database {}, {:?}", database->second, user_key);
}

std::string DataRepair::name_of(std::string_view meta_key) const {
  if (meta_key.size() < 4) return "database 0, \"\"";
  return name_of(storage::read_be32(meta_key), storage::user_key_of(meta_key));
}

void DataRepair::put(Space space, std::string_view key, std::string_view value) {
  batch_->put(space, key, value);
  if (batch_->bytes() > kBatchBytes) commit();
}

void DataRepair::commit() {
  if (status_.ok()) note(target_.write(*batch_, storage::Durability::kBuffered));
  batch_->clear();
}

}  // namespace ingot::repair
