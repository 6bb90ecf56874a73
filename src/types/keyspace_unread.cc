// Keys that are overwritten without a look at what they held: when that may be, and how counts and
// the expiry index come right once somebody has looked.
#include <algorithm>

#include "src/types/access_clock.h"
#include "src/types/keyspace.h"

namespace ingot::types {

using storage::Lookup;
using storage::Metadata;
using storage::Space;

bool KeyWriter::peek_overwritten(int db, std::string_view key, bool expires, Record* record) {
  const bool found = look_overwritten(db, key, expires, record);
  if (found && marks_access_) note_use(keyspace(db), key);
  return found;
}

bool KeyWriter::look_overwritten(int db, std::string_view key, bool expires, Record* record) {
  const storage::KeyspaceId space = keyspace(db);
  if (!may_leave_unread(space, expires)) return peek(db, key, record);
  std::string bytes;
  switch (overlay_.probe(Space::kMeta, storage::meta_key(space, key), &bytes)) {
    case Lookup::kAbsent:
      return false;
    case Lookup::kFound:
      return assign(std::move(bytes), record) && is_live(db, key, *record);
    case Lookup::kError:
      return peek(db, key, record);
    case Lookup::kMiss:
      break;
  }
  const bool may_be_collection =
      state_.counts[space].collections != 0 &&
      overlay_.probe(Space::kMeta, storage::marker_key(space, key), &bytes) != Lookup::kAbsent;
  if (may_be_collection) return peek(db, key, record);
  record->leave_unread();
  return true;
}

bool KeyWriter::may_leave_unread(storage::KeyspaceId keyspace, bool expires) {
  if (overwrites_ == Overwrites::kRead || (expires && overwrites_ != Overwrites::kUnread)) {
    return false;
  }
  // An event tells what the key was.
  return wanted_events_ == 0 && state_.counts[keyspace].marked && !data_.failed();
}

void KeyWriter::settle(const Unread& key, const std::optional<OldTimes>& old,
                       int64_t overwritten_ms, bool counted) {
  if (database_of(key.keyspace) < 0) return;
  if (counted) count(key.keyspace, 0, 0, 0);  // they may be exact now
  if (!old) {
    if (counted) count(key.keyspace, 1, 0, 0);
    return;
  }
  if (old->expire_ms != 0) {
    if (counted) count(key.keyspace, 0, -1, 0);
    if (old->expire_ms <= overwritten_ms) ++effects_.expired_keys;
  }
  if (old->indexed_ms == 0) return;
  // Left alone where only the disk knows: it is removed when it fires.
  std::string bytes;
  const Lookup found =
      overlay_.probe(Space::kMeta, storage::meta_key(key.keyspace, key.key), &bytes);
  Metadata now;
  if (found == Lookup::kFound && !storage::decode_metadata(bytes, &now)) return;
  if (found != Lookup::kFound && found != Lookup::kAbsent) return;
  if (now.indexed_ms == old->indexed_ms) return;
  overlay_.remove(Space::kExpiry, storage::expiry_key(old->indexed_ms, key.keyspace, key.key));
}

void KeyWriter::correct_counts(storage::KeyspaceId keyspace, const storage::KeyCounts& noted,
                               const storage::KeyCounts& found) {
  if (database_of(keyspace) < 0) return;
  count(keyspace, static_cast<int64_t>(found.keys - noted.keys),
        static_cast<int64_t>(found.expires - noted.expires), 0);
}

bool KeyspaceState::any_unread(storage::KeyspaceId keyspace) const {
  return std::ranges::any_of(unread, [&](const Unread& key) { return key.keyspace == keyspace; });
}

}  // namespace ingot::types
