// One walk over each space: garbage first, then the keys and their values, then what belongs to
// them.
#include "src/check/data_check.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "src/types/counted_order.h"
#include "src/types/digest.h"
#include "src/types/hash_value.h"
#include "src/types/list_records.h"
#include "src/types/sorted_set_value.h"
#include "storage/codec.h"
#include "storage/order_counts.h"

namespace ingot::check {

using storage::CollectionId;
using storage::GarbageKind;
using storage::KeyspaceId;
using storage::Space;
using storage::ValueType;

namespace {

constexpr size_t kIdBytes = 8;
// Of so many items one is looked up by what the order counts: fewer than a node of it has.
constexpr uint64_t kRankEvery = 100;

std::string quoted(std::string_view bytes) {
  return fmt::format("{:?}", bytes.substr(0, 100));
}

}  // namespace

std::string version_problem(storage::Engine& engine) {
  std::string value;
  storage::Status status;
  const storage::Lookup found = engine.get(nullptr, Space::kSystem, storage::version_key(),
                                           storage::Tier::kDisk, &value, &status);
  if (found != storage::Lookup::kFound || value.size() != sizeof(uint32_t)) return {};
  return storage::version_error(storage::read_le32(value));
}

DataCheck::DataCheck(storage::Engine& engine, std::function<void(const std::string&)> problem)
    : engine_(engine),
      data_(engine, nullptr, storage::Tier::kDisk, storage::CacheUse::kPassBy),
      problem_(std::move(problem)) {}

void DataCheck::run() {
  read_system();
  read_garbage();
  walk(Space::kMeta, [&](std::string_view key, std::string_view value) { check_key(key, value); });
  walk(Space::kData,
       [&](std::string_view key, std::string_view value) { check_element(key, value); });
  walk(Space::kOrder,
       [&](std::string_view key, std::string_view value) { check_order(key, value); });
  walk(Space::kExpiry, [&](std::string_view key, std::string_view) {
    storage::ExpiryEntry entry;
    if (!storage::decode_expiry_key(key, &entry)) say("expiry: an unreadable entry");
  });
  check_counts();
}

void DataCheck::walk(Space space, const Visit& visit) {
  storage::CursorOptions options;
  options.fill_cache = false;
  const auto cursor = engine_.new_cursor(space, options);
  for (cursor->seek({}); cursor->valid(); cursor->next()) visit(cursor->key(), cursor->value());
  if (!cursor->status().ok()) {
    say(fmt::format("{}: cannot be read to its end: {}", storage::space_name(space),
                    cursor->status().message()));
  }
}

void DataCheck::read_system() {
  boost::unordered_flat_map<uint32_t, KeyspaceId> databases;
  walk(Space::kSystem, [&](std::string_view key, std::string_view value) {
    if (key == storage::reserved_ids_key() && value.size() == 8) {
      first_free_id_ = storage::read_le64(value);
    } else if (key.size() == 5 && key[0] == 'd' && value.size() == 4) {
      databases[storage::read_be32(key.substr(1))] = storage::read_le32(value);
    } else if (key.size() == 5 && key[0] == 'c') {
      if (!storage::decode_counts(value, &keyspaces_[storage::read_be32(key.substr(1))].noted)) {
        say("system: an unreadable key count");
      }
    }
  });
  for (const auto& [database, keyspace] : databases) keyspaces_[keyspace].has_database = true;
  // A database that was never flushed nor swapped is the keyspace of its own number.
  for (auto& [id, keyspace] : keyspaces_) {
    if (id < storage::kFirstFreeKeyspace && !databases.contains(id)) keyspace.has_database = true;
  }
}

void DataCheck::read_garbage() {
  walk(Space::kGarbage, [&](std::string_view key, std::string_view) {
    GarbageKind kind;
    uint64_t id = 0;
    if (!storage::decode_garbage_key(key, &kind, &id)) return say("garbage: an unreadable entry");
    if (kind == GarbageKind::kCollection) garbage_.emplace(id, true);
    if (kind == GarbageKind::kKeyspace) keyspaces_[static_cast<KeyspaceId>(id)].dead = true;
  });
}

void DataCheck::check_key(std::string_view key, std::string_view value) {
  if (key.size() < 4) return say("meta: a key that is too short");
  const KeyspaceId id = storage::read_be32(key);
  if ((id & storage::kMarkersBit) != 0) return check_marker(key, value);
  const std::string name = fmt::format("keyspace {}, key {}", id, quoted(key.substr(4)));
  types::Record record;
  if (!record.assign(std::string(value))) return say(name + ": an unreadable record");
  Keyspace& keyspace = keyspaces_[id];
  ++keyspace.found.keys;
  keyspace.found.expires += record.expire_ms() != 0;
  // Of a dead keyspace collections may have gone before the records that own them.
  const bool alive = !keyspace.dead;
  if (const auto& collection = record.collection()) {
    ++keyspace.found.collections;
    if (collection->id >= first_free_id_) {
      say(fmt::format("{}: its id {} was never reserved", name, collection->id));
    }
    if (alive && garbage_.contains(collection->id)) {
      say(fmt::format("{}: its collection {} is garbage", name, collection->id));
    }
    Owner owner = {.type = record.type(), .count = collection->count, .alive = alive};
    if (record.type() == ValueType::kList && !types::decode_bounds(record.payload(), &owner.list)) {
      say(name + ": unreadable ends of a list");
    }
    if (record.type() == ValueType::kString) owner.string = types::chunks_of(record);
    if (!owners_.emplace(collection->id, owner).second) {
      say(fmt::format("{}: its collection {} is another key's as well", name, collection->id));
    }
  }
  if (!alive) return;
  ++keys_;
  check_expiry(name, key, record);
  check_value(name, record);
}

// Whoever overwrites the key goes by it.
void DataCheck::check_marker(std::string_view key, std::string_view value) {
  const KeyspaceId id = storage::read_be32(key) & ~storage::kMarkersBit;
  if (keyspaces_[id | storage::kMarkersBit].dead) return;
  const std::string_view user_key = storage::user_key_of(key);
  std::string bytes;
  types::Record record;
  const bool is_right = data_.get(Space::kMeta, storage::meta_key(id, user_key), &bytes) &&
                        record.assign(std::move(bytes)) && record.collection() &&
                        storage::encode_marker(record.collection()->id) == value;
  if (!is_right) {
    say(fmt::format("keyspace {}, key {}: its marker is of another collection", id,
                    quoted(user_key)));
  }
  ++keyspaces_[id].markers;
}

void DataCheck::check_expiry(const std::string& name, std::string_view key,
                             const types::Record& record) {
  const storage::Metadata metadata = record.metadata();
  const bool due = metadata.expire_ms != 0 || metadata.element_expire_ms != 0;
  if (due && metadata.indexed_ms == 0) return say(name + ": it expires, and no index knows");
  if (metadata.indexed_ms == 0) return;
  std::string entry;
  if (!data_.get(Space::kExpiry,
                 storage::expiry_key(metadata.indexed_ms, storage::read_be32(key), key.substr(4)),
                 &entry)) {
    say(name + ": its entry in the expiry index is missing");
  }
  if (metadata.expire_ms != 0 && metadata.indexed_ms > metadata.expire_ms) {
    say(name + ": the expiry index fires after its time");
  }
}

void DataCheck::check_value(const std::string& name, const types::Record& record) {
  types::value_digest(data_, record);  // reads all of it
  if (!data_.failed() && record.type() == ValueType::kSortedSet && record.collection()) {
    check_sorted_set(record);
  }
  if (!data_.failed() && record.type() == ValueType::kList && record.collection()) {
    check_list(record);
  }
  if (data_.failed()) say(fmt::format("{}: {}", name, data_.error().message()));
  data_.reset_outcome();
}

void DataCheck::check_sorted_set(const types::Record& record) {
  const auto wrong = [&](const char* what) {
    data_.latch_error({storage::Status::Code::kCorruption, what});
  };
  types::SortedSetReader set(data_, record);
  uint64_t rank = 0;
  set.walk([&](std::string_view member, double score) {
    if (set.score(member) != score) wrong("a member's score and its place in the order differ");
    if (rank % kRankEvery == 0 && set.rank(member) != rank)
      wrong("the counts of its order are wrong");
    ++rank;
    return !data_.failed();
  });
  if (!data_.failed() && rank != set.size()) wrong("its order has more or fewer members than it");
}

// By index they are found through the counts of the order, where the list has one.
void DataCheck::check_list(const types::Record& record) {
  types::ListReader list(data_, record);
  uint64_t index = 0;
  std::string found;
  list.walk(0, [&](std::string_view element) {
    if (index % kRankEvery == 0 && (!list.get(index, &found) || found != element)) {
      data_.latch_error({storage::Status::Code::kCorruption, "the counts of its order are wrong"});
    }
    ++index;
    return !data_.failed();
  });
}

void DataCheck::check_element(std::string_view key, std::string_view value) {
  if (key.size() < kIdBytes || value.empty()) return say("data: an unreadable element");
  const CollectionId id = storage::read_be64(key);
  const std::string_view element = key.substr(kIdBytes);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return check_order(key);
  if (owner->second.type == ValueType::kList) return check_list_record(key, value, owner->second);
  ++elements_;
  const bool is_entry = owner->second.type != ValueType::kStream || element.starts_with('\0');
  owner->second.found += is_entry;
  if (owner->second.type != ValueType::kString) return;
  const types::StringChunks& cut = owner->second.string;
  std::string_view chunk;
  if (element.size() != 4 || !cut.decode(value, &chunk) ||
      storage::read_be32(element) * cut.bytes >= owner->second.count) {
    say(fmt::format("data: a string (collection {}) has a chunk that cannot be", id));
  }
}

// A node may hold elements that were popped, but not those alone.
void DataCheck::check_list_record(std::string_view key, std::string_view value, Owner& owner) {
  types::ListElements record;
  if (key.size() != 2 * kIdBytes || !types::read_elements(types::label_of(key), value, &record)) {
    return say(fmt::format("data: an unreadable record of a list (collection {})",
                           storage::read_be64(key)));
  }
  const types::Labels inside = {.first = owner.list.first, .last = owner.list.last};
  const uint64_t before = owner.found;
  for (size_t i = 0; i < record.size; ++i) owner.found += inside.contains(record.label(i));
  elements_ += owner.found - before;
  if (owner.found == before) {
    say(fmt::format("data: an element that its list (collection {}) no longer has",
                    storage::read_be64(key)));
  }
}

void DataCheck::check_order(std::string_view key, std::string_view record) {
  if (key.size() < kIdBytes) return say("order: an unreadable element");
  const CollectionId id = storage::read_be64(key);
  const auto owner = owners_.find(id);
  if (owner != owners_.end()) {
    const ValueType type = owner->second.type;
    const std::string_view element = key.substr(kIdBytes);
    if ((type != ValueType::kSortedSet && type != ValueType::kList) || element.empty() ||
        element.front() != storage::OrderCounts::kLeaf) {
      return;
    }
    if (std::exchange(ordered_, id) != id) last_bound_.clear();
    return check_leaf(owner->second, element.substr(1), record);
  }
  if (garbage_.contains(id) || std::exchange(orphan_, id) == id) return;
  say(fmt::format("collection {}: it belongs to no key, and is not garbage", id));
}

// Who looks for an item goes by the bounds alone.
void DataCheck::check_leaf(Owner& owner, std::string_view bound, std::string_view record) {
  const bool misplaced = owner.misplaced;
  std::string before = std::exchange(last_bound_, std::string(bound));
  const bool readable = types::CountedOrder::read_leaf(record, [&](std::string_view item, bool) {
    std::string its = std::string(1, '\0').append(item);
    owner.misplaced = owner.misplaced || its <= before || its > bound;
    before = std::move(its);
    ++owner.ordered;
    return true;
  });
  if (!readable) say(fmt::format("collection {}: an unreadable record of its order", ordered_));
  if (owner.misplaced && !misplaced) {
    say(fmt::format("collection {}: an item of its order stands in the wrong place", ordered_));
  }
}

void DataCheck::check_counts() {
  for (const auto& [id, owner] : owners_) {
    if (!owner.alive || owner.type == ValueType::kString || garbage_.contains(id)) continue;
    if (owner.found != owner.count) {
      say(fmt::format("collection {}: its key counts {} elements, {} are there", id, owner.count,
                      owner.found));
    }
    if (owner.type == ValueType::kList && owner.list.gapped && owner.ordered != owner.count) {
      say(fmt::format("collection {}: its key counts {} elements, its order has {}", id,
                      owner.count, owner.ordered));
    }
  }
  for (const auto& [id, keyspace] : keyspaces_) {
    if (keyspace.dead) continue;
    if (!keyspace.has_database && keyspace.found.keys > 0 && id >= storage::kFirstFreeKeyspace) {
      say(fmt::format("keyspace {}: its keys belong to no database, and are not garbage", id));
    }
    if (keyspace.noted.marked && (keyspace.found.collections != keyspace.noted.collections ||
                                  keyspace.found.collections != keyspace.markers)) {
      say(fmt::format("keyspace {}: {} collections are noted and {} marked, {} are there", id,
                      keyspace.noted.collections, keyspace.markers, keyspace.found.collections));
    }
    if (keyspace.noted.settled && (keyspace.found.keys != keyspace.noted.keys ||
                                   keyspace.found.expires != keyspace.noted.expires)) {
      say(fmt::format("keyspace {}: {} keys and {} with an expiry are noted, {} and {} are there",
                      id, keyspace.noted.keys, keyspace.noted.expires, keyspace.found.keys,
                      keyspace.found.expires));
    }
  }
}

}  // namespace ingot::check
