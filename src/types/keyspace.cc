// Looking keys up, and storing and dropping them with their counts, expiry index and garbage.
#include "src/types/keyspace.h"

#include <algorithm>
#include <limits>

#include "src/types/access_clock.h"
#include "src/types/hash_value.h"
#include "storage/check.h"
#include "storage/clear_to_little.h"

namespace ingot::types {

using storage::Lookup;
using storage::Metadata;
using storage::Space;
using storage::Status;

namespace {

constexpr std::string_view kMarker{"\0", 1};  // the value of records that only exist
constexpr int64_t kFillingRetryMs = 10'000;   // fields wait until their keyspace is a database's

Status corrupt(std::string_view what) {
  return {Status::Code::kCorruption, "unreadable " + std::string(what) + " record"};
}

// When the expiry index is to look at a key next; 0: never. Fields that should have gone are looked
// at as soon as the clock moves.
int64_t due_ms(const Metadata& metadata, int64_t now_ms) {
  if (metadata.element_expire_ms == 0) return metadata.expire_ms;
  const int64_t fields_ms = std::max(metadata.element_expire_ms, now_ms + 1);
  return metadata.expire_ms == 0 ? fields_ms : std::min(metadata.expire_ms, fields_ms);
}

}  // namespace

bool Record::assign(std::string bytes) {
  unread_ = false;
  bytes_ = std::move(bytes);
  if (!storage::decode_metadata(bytes_, &meta_)) return false;
  payload_bytes_ = meta_.payload.size();
  return true;
}

Metadata Record::metadata() const {
  Metadata copy = meta_;
  copy.payload = payload();
  return copy;
}

bool KeyReader::load(storage::KeyspaceId keyspace, std::string_view key, Record* record) {
  std::string bytes;
  if (!data_.get(Space::kMeta, storage::meta_key(keyspace, key), &bytes)) return false;
  return assign(std::move(bytes), record);
}

bool KeyReader::assign(std::string bytes, Record* record) {
  if (record->assign(std::move(bytes))) return true;
  data_.latch_error(corrupt("metadata"));
  return false;
}

bool KeyReader::find(int db, std::string_view key, Record* record) {
  if (!KeyReader::peek(db, key, record)) {
    note_miss(db, key);
    return false;
  }
  ++hits;
  if (marks_access_) mark_used(keyspace(db), key);
  return true;
}

void KeyReader::mark_used(storage::KeyspaceId keyspace, std::string_view key) {
  if (access_ != nullptr) access_->use(keyspace, key, now_ms_);
}

bool KeyReader::peek(int db, std::string_view key, Record* record) {
  if (!load(keyspace(db), key, record)) return false;
  if (!expired(*record)) return true;
  if (expired_keys.size() < kExpiredMax)
    expired_keys.push_back({.db = db, .key = std::string(key)});
  return false;
}

storage::KeyCounts KeyReader::counts(int db) {
  storage::KeyCounts counts;
  std::string bytes;
  if (data_.get(Space::kSystem, storage::counts_key(keyspace(db)), &bytes) &&
      !storage::decode_counts(bytes, &counts)) {
    data_.latch_error(corrupt("key count"));
  }
  return counts;
}

KeyWriter::KeyWriter(storage::Overlay& overlay, KeyspaceState& state, FreshIds& ids,
                     Effects& effects, int64_t now_ms, AccessClock* access, bool collect_touched)
    : KeyReader(overlay, state.databases, now_ms, access),
      overlay_(overlay),
      state_(state),
      ids_(ids),
      effects_(effects),
      collect_touched_(collect_touched) {}

bool KeyWriter::find_any(int db, std::string_view key, Record* record) {
  return load(keyspace(db), key, record) && is_live(db, key, *record);
}

bool KeyWriter::is_live(int db, std::string_view key, const Record& record) {
  if (!expired(record)) return true;
  if (!keeps_expired_) expire(db, key, record);
  return false;
}

bool KeyWriter::find(int db, std::string_view key, Record* record) {
  if (!find_any(db, key, record)) {
    note_miss(db, key);
    return false;
  }
  ++hits;
  if (marks_access_) note_use(keyspace(db), key);
  return true;
}

bool KeyWriter::peek(int db, std::string_view key, Record* record) {
  return find_any(db, key, record);
}

void KeyWriter::note_use(storage::KeyspaceId keyspace, std::string_view key) {
  if (access_ == nullptr) return;
  if (access_->use(keyspace, key, now_ms_)) used_ = key;
}

void KeyWriter::note_stored(storage::KeyspaceId keyspace, std::string_view key, bool is_new) {
  // Who only peeked at what it changes has used it, too.
  const bool uses = !is_new && marks_access_ && used_ != key;
  if (is_new) {
    access_->begin(keyspace, key, now_ms_);
  } else if (uses) {
    (void)access_->use(keyspace, key, now_ms_);
  } else {
    access_->mark(keyspace, key, now_ms_);
  }
  used_.clear();
}

bool KeyWriter::is_stale_in(storage::KeyspaceId keyspace, std::string_view key) {
  Record record;
  return load(keyspace, key, &record) && expired(record);
}

bool KeyWriter::stored_in(storage::KeyspaceId keyspace, std::string_view key) {
  Record record;
  return load(keyspace, key, &record);
}

storage::KeyCounts KeyWriter::counts(int db) {
  const storage::KeyspaceId space = keyspace(db);
  const auto found = state_.counts.find(space);
  if (found == state_.counts.end()) return {};
  storage::KeyCounts counts = found->second;
  counts.settled = counts.settled && !state_.any_unread(space);
  return counts.not_negative();
}

storage::CollectionId KeyWriter::new_collection() {
  storage::Status failure;
  const storage::CollectionId id = ids_.next(&failure);
  if (!failure.ok()) data_.latch_error(failure);
  return id;
}

void KeyWriter::store(int db, std::string_view key, const Record* before, Metadata after,
                      Touch touch) {
  storage::KeyspaceId space = keyspace(db);
  Metadata old = before != nullptr ? before->metadata() : Metadata{};
  const int64_t due = due_ms(after, now_ms_);
  if (due == 0) {
    if (old.indexed_ms != 0) {
      overlay_.remove(Space::kExpiry, storage::expiry_key(old.indexed_ms, space, key));
    }
    after.indexed_ms = 0;
  } else if (old.indexed_ms != 0 && old.indexed_ms <= due) {
    after.indexed_ms = old.indexed_ms;  // fires early and is put back then
  } else {
    if (old.indexed_ms != 0) {
      overlay_.remove(Space::kExpiry, storage::expiry_key(old.indexed_ms, space, key));
    }
    after.indexed_ms = due;
    const std::string entry = storage::expiry_key(due, space, key);
    if (entry < state_.expiry_low_water) state_.set_expiry_low_water(entry);
    state_.next_due_ms = std::min(state_.next_due_ms, due);
    overlay_.put(Space::kExpiry, entry, kMarker);
  }
  std::string record;
  storage::encode_metadata(after, &record);
  overlay_.put(Space::kMeta, storage::meta_key(space, key), record);

  if (before == nullptr) notify(types::notify::kNew, "new", db, key);
  int64_t expires = (after.expire_ms != 0) - (old.expire_ms != 0);
  if (before == nullptr || expires != 0) count(space, before == nullptr ? 1 : 0, expires, 0);
  if (before != nullptr && before->unread()) {
    count(space, 0, 0, 0);
    state_.unread.push_back({.keyspace = space, .key = std::string(key)});
  }
  mark_collection(space, key, old, after);
  if (old.collection && (!after.collection || after.collection->id != old.collection->id)) {
    discard_collection(old.collection->id);
  }
  // A string is replaced by what changes it.
  const bool is_new = before == nullptr || after.type == storage::ValueType::kString;
  if (access_ != nullptr && (marks_access_ || is_new)) note_stored(space, key, before == nullptr);
  this->touch(db, key, touch);
}

void KeyWriter::remove(int db, std::string_view key, const Record& before) {
  drop(db, key, before, /*keep_collection=*/false);
}

void KeyWriter::unlink(int db, std::string_view key, const Record& before) {
  drop(db, key, before, /*keep_collection=*/true);
}

void KeyWriter::drop(int db, std::string_view key, const Record& before, bool keep_collection) {
  drop_record(keyspace(db), key, before, keep_collection);
  touch(db, key);
}

void KeyWriter::drop_record(storage::KeyspaceId space, std::string_view key, const Record& before,
                            bool keep_collection) {
  Metadata old = before.metadata();
  overlay_.remove(Space::kMeta, storage::meta_key(space, key));
  if (old.indexed_ms != 0) {
    overlay_.remove(Space::kExpiry, storage::expiry_key(old.indexed_ms, space, key));
  }
  count(space, -1, old.expire_ms != 0 ? -1 : 0, 0);
  mark_collection(space, key, old, {});
  if (old.collection && !keep_collection) discard_collection(old.collection->id);
}

void KeyWriter::expire(int db, std::string_view key, const Record& record) {
  const uint64_t author = std::exchange(author_, 0);
  const uint64_t changes = effects_.changes;
  drop(db, key, record, /*keep_collection=*/false);
  author_ = author;
  effects_.changes = changes;  // it is not counted among them
  ++effects_.expired_keys;
  if (tells_replicas_) effects_.told.tell(db, {"DEL", key});
  notify(types::notify::kExpired, "expired", db, key);
}

void KeyWriter::count(storage::KeyspaceId keyspace, int64_t keys, int64_t expires,
                      int64_t collections) {
  state_.count({keyspace, keys, expires, collections});
}

void KeyWriter::mark_collection(storage::KeyspaceId keyspace, std::string_view key,
                                const Metadata& old, const Metadata& after) {
  if (after.collection && (!old.collection || old.collection->id != after.collection->id)) {
    overlay_.put(Space::kMeta, storage::marker_key(keyspace, key),
                 storage::encode_marker(after.collection->id));
  }
  if (old.collection && !after.collection) {
    overlay_.remove(Space::kMeta, storage::marker_key(keyspace, key));
  }
  const int64_t more = int64_t{after.collection.has_value()} - int64_t{old.collection.has_value()};
  if (more != 0) count(keyspace, 0, 0, more);
}

void KeyWriter::discard_collection(storage::CollectionId id) {
  overlay_.put(Space::kGarbage, storage::garbage_key(storage::GarbageKind::kCollection, id),
               kMarker);
  effects_.dropped_collections.push_back(id);
}

void KeyWriter::tell_lookup(int db, std::string_view key, bool found) {
  ++(found ? effects_.lookup_hits : effects_.lookup_misses);
  if (!found) notify(types::notify::kKeyMiss, "keymiss", db, key);
}

void KeyWriter::touch(int db, std::string_view key, Touch touch) {
  ++effects_.changes;
  if (tells_changes_ && touch == Touch::kModified) {
    effects_.notices.tell(KeyChange{.key = std::string(key), .author = author_});
  }
  if (!collect_touched_ || touch == Touch::kQuiet) return;
  effects_.touched.push_back(
      {.db = db, .key = std::string(key), .modified = touch == Touch::kModified});
}

void KeyWriter::flush(int db) {
  storage::KeyspaceId old = keyspace(db);
  storage::KeyCounts before = counts(db);
  effects_.swapped.push_back({.a = db, .b = db, .keyspace_a = old, .keyspace_b = old});
  // Once for all databases of a FLUSHALL.
  const bool is_told =
      !effects_.notices.empty() && std::holds_alternative<AllChanged>(effects_.notices.list.back());
  if (tells_changes_ && !is_told) effects_.notices.tell(AllChanged{});
  if (before.surely_empty()) return;
  storage::Status failure;
  const uint64_t fresh = state_.keyspace_ids->next(&failure);
  if (!failure.ok()) return data_.latch_error(failure);
  map_database(db, static_cast<storage::KeyspaceId>(fresh));
  effects_.changes += before.keys;
}

// What the database held is garbage.
void KeyWriter::map_database(int db, storage::KeyspaceId fresh) {
  const storage::KeyspaceId old = keyspace(db);
  state_.map(db, fresh);
  std::string record;
  storage::append_le32(&record, fresh);
  overlay_.put(Space::kSystem, storage::database_key(static_cast<uint32_t>(db)), record);
  for (const storage::KeyspaceId dead : {old, old | storage::kMarkersBit}) {
    overlay_.put(Space::kGarbage, storage::garbage_key(storage::GarbageKind::kKeyspace, dead),
                 kMarker);
    effects_.dropped_keyspaces.push_back(dead);
  }
}

void KeyWriter::replace(int db, const FilledKeyspace& filled) {
  const storage::KeyspaceId old = keyspace(db);
  effects_.swapped.push_back({.a = db, .b = db, .keyspace_a = old, .keyspace_b = filled.id});
  if (tells_changes_) effects_.notices.tell(AllChanged{});
  map_database(db, filled.id);
  for (const storage::KeyspaceId alive : {filled.id, filled.id | storage::kMarkersBit}) {
    overlay_.remove(Space::kGarbage, storage::garbage_key(storage::GarbageKind::kKeyspace, alive));
  }
  count(filled.id, static_cast<int64_t>(filled.counts.keys),
        static_cast<int64_t>(filled.counts.expires),
        static_cast<int64_t>(filled.counts.collections));
  std::string first = storage::expiry_key(filled.first_due_ms, 0, {});
  if (first < state_.expiry_low_water) state_.set_expiry_low_water(std::move(first));
  state_.next_due_ms = std::min(state_.next_due_ms, filled.first_due_ms);
  effects_.changes += filled.counts.keys;
}

void KeyWriter::swap(int a, int b) {
  const storage::KeyspaceId first = keyspace(a);
  const storage::KeyspaceId second = keyspace(b);
  effects_.swapped.push_back({.a = a, .b = b, .keyspace_a = first, .keyspace_b = second});
  state_.map(a, second);
  state_.map(b, first);
  for (int db : {a, b}) {
    std::string record;
    storage::append_le32(&record, keyspace(db));
    overlay_.put(Space::kSystem, storage::database_key(static_cast<uint32_t>(db)), record);
  }
  ++effects_.changes;
}

int KeyWriter::database_of(storage::KeyspaceId keyspace) const {
  const auto& databases = state_.databases;
  auto found = std::find(databases.begin(), databases.end(), keyspace);
  return found == databases.end() ? -1 : static_cast<int>(found - databases.begin());
}

KeyWriter::ExpiryProgress KeyWriter::expire_due(size_t limit, std::string_view low_water) {
  // Entries are gathered first: what is changed below must not move the cursor's ground.
  std::vector<std::string> due;
  auto cursor = overlay_.cursor(Space::kExpiry, {}, storage::expiry_key(now_ms_ + 1, 0, {}));
  for (cursor->seek(low_water); cursor->valid() && due.size() < limit; cursor->next()) {
    due.emplace_back(cursor->key());
  }
  overlay_.check(*cursor);
  ExpiryProgress progress{.low_water = std::string(low_water), .next_due_ms = now_ms_};
  for (const std::string& key : due) {
    storage::ExpiryEntry entry;
    if (!storage::decode_expiry_key(key, &entry)) {
      data_.latch_error(corrupt("expiry"));
      break;
    }
    settle_due(key, entry);
    if (data_.failed()) break;
    progress.low_water = key;
  }
  if (due.size() == limit) return progress;

  progress.low_water =
      std::max<std::string>(progress.low_water, storage::expiry_key(now_ms_, 0, {}));
  auto rest = overlay_.cursor(Space::kExpiry, {}, {});
  rest->seek(storage::expiry_key(now_ms_, 0, {}));
  overlay_.check(*rest);
  storage::ExpiryEntry next;
  bool any = rest->valid() && storage::decode_expiry_key(rest->key(), &next);
  progress.next_due_ms = any ? next.expire_ms : std::numeric_limits<int64_t>::max();
  return progress;
}

void KeyWriter::settle_due(std::string_view index_key, const storage::ExpiryEntry& entry) {
  int db = database_of(entry.keyspace);
  const bool filling =
      db < 0 && state_.filling != nullptr && state_.filling->contains(entry.keyspace);
  Record record;
  bool current = (db >= 0 || filling) && load(entry.keyspace, entry.user_key, &record) &&
                 record.metadata().indexed_ms == entry.expire_ms;
  if (current && expired(record)) {
    if (!filling) return expire(db, entry.user_key, record);
    return drop_record(entry.keyspace, entry.user_key, record, /*keep_collection=*/false);
  }
  overlay_.remove(Space::kExpiry, index_key);
  if (!current) return;
  const bool any_field = record.element_expire_ms() != 0 && record.element_expire_ms() <= now_ms_;
  if (any_field && !filling) {
    expire_fields(*this, db, entry.user_key, record);
    if (!load(entry.keyspace, entry.user_key, &record)) return;
  }
  Metadata later = record.metadata();
  // The expiry was put off after it was indexed, or more fields are due than are removed at a time:
  // indexed anew.
  later.indexed_ms = due_ms(later, now_ms_);
  if (later.indexed_ms == 0) return;
  if (any_field && filling) later.indexed_ms = now_ms_ + kFillingRetryMs;
  overlay_.put(Space::kExpiry,
               storage::expiry_key(later.indexed_ms, entry.keyspace, entry.user_key), kMarker);
  std::string bytes;
  storage::encode_metadata(later, &bytes);
  overlay_.put(Space::kMeta, storage::meta_key(entry.keyspace, entry.user_key), bytes);
}

void KeyspaceState::count(const CountChange& change) {
  storage::KeyCounts& changed = counts[change.keyspace];
  changed.keys += static_cast<uint64_t>(change.keys);
  changed.expires += static_cast<uint64_t>(change.expires);
  changed.collections += static_cast<uint64_t>(change.collections);
  count_changes.push_back(change);
}

void KeyspaceState::rollback(const Savepoint& savepoint) {
  INGOT_CHECK(savepoint.count_changes <= count_changes.size());
  INGOT_CHECK(savepoint.unread <= unread.size());
  unread.resize(savepoint.unread);
  INGOT_CHECK(savepoint.databases_before <= databases_before.size());
  while (count_changes.size() > savepoint.count_changes) {
    const CountChange& change = count_changes.back();
    const auto changed = counts.find(change.keyspace);
    INGOT_CHECK(changed != counts.end());
    changed->second.keys -= static_cast<uint64_t>(change.keys);
    changed->second.expires -= static_cast<uint64_t>(change.expires);
    changed->second.collections -= static_cast<uint64_t>(change.collections);
    count_changes.pop_back();
  }
  while (databases_before.size() > savepoint.databases_before) {
    const Mapping& mapping = databases_before.back();
    databases[static_cast<size_t>(mapping.db)] = mapping.before;
    databases_before.pop_back();
  }
  orders.rollback(savepoint.orders);
  if (low_waters_before.size() > savepoint.low_waters_before) {
    expiry_low_water = std::move(low_waters_before[savepoint.low_waters_before]);
    low_waters_before.resize(savepoint.low_waters_before);
  }
  next_due_ms = savepoint.next_due_ms;
}

void KeyspaceState::map(int db, storage::KeyspaceId keyspace) {
  auto& mapped = databases[static_cast<size_t>(db)];
  databases_before.push_back({.db = db, .before = std::exchange(mapped, keyspace)});
}

void KeyspaceState::set_expiry_low_water(std::string key) {
  low_waters_before.push_back(std::exchange(expiry_low_water, std::move(key)));
}

void KeyspaceState::end_group() {
  storage::clear_to_little(count_changes, count_changes.capacity());
  storage::clear_to_little(unread, unread.capacity());
  databases_before.clear();
  storage::clear_to_little(low_waters_before, low_waters_before.capacity());
  orders.end_group();
}

Effects::Savepoint Effects::savepoint() const {
  return {.touched = touched.size(),
          .swapped = swapped.size(),
          .watched = watched.size(),
          .unblocked = unblocked.size(),
          .pauses = pauses.size(),
          .collections = dropped_collections.size(),
          .keyspaces = dropped_keyspaces.size(),
          .kept = kept.size(),
          .notices = notices.savepoint(),
          .told = told.savepoint(),
          .expired_keys = expired_keys,
          .changes = changes,
          .unwatch = unwatch,
          .libraries = libraries};
}

void Effects::rollback(const Savepoint& savepoint) {
  INGOT_CHECK(savepoint.touched <= touched.size());
  INGOT_CHECK(savepoint.collections <= dropped_collections.size());
  libraries = savepoint.libraries;
  touched.resize(savepoint.touched);
  swapped.resize(savepoint.swapped);
  watched.resize(savepoint.watched);
  unblocked.resize(savepoint.unblocked);
  pauses.resize(savepoint.pauses);
  dropped_collections.resize(savepoint.collections);
  dropped_keyspaces.resize(savepoint.keyspaces);
  notices.rollback(savepoint.notices);
  told.rollback(savepoint.told);
  kept.resize(savepoint.kept);
  expired_keys = savepoint.expired_keys;
  changes = savepoint.changes;
  unwatch = savepoint.unwatch;
}

}  // namespace ingot::types
