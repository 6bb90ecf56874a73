// How a user key is found, counted, expired and dropped: the one place that knows metadata records.
//
// KeyReader sees one state and skips expired keys. KeyWriter works on the writer's overlay and
// keeps counts, expiry index and garbage records in step with every change, in the same batch.
// One thread at a time; failures latch in the storage::Reader below.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/drawn_members.h"
#include "src/types/filling_keyspaces.h"
#include "src/types/notices.h"
#include "src/types/order_index.h"
#include "src/types/told.h"
#include "storage/codec.h"
#include "storage/overlay.h"
#include "storage/reader.h"

namespace ingot::script {
class Libraries;
}

namespace ingot::types {

// Which keyspace each database number maps to. Immutable; replaced as a whole.
using DatabaseMap = std::vector<storage::KeyspaceId>;

// When keys were last used, for OBJECT IDLETIME, and how often, for OBJECT FREQ: a fixed table, so
// two keys may share a slot (then a key seems used more recently than it was, or more often). Any
// thread.
class AccessClock;

// One key's metadata with the bytes behind it. One that was never assigned is that of no key: the
// readers of all types take it for an empty value.
class Record {
 public:
  bool exists() const { return !bytes_.empty(); }
  // Nobody has looked: see KeyWriter::peek_overwritten().
  bool unread() const { return unread_; }
  void leave_unread() {
    *this = {};
    unread_ = true;
  }
  // False when `bytes` are not a metadata record.
  [[nodiscard]] bool assign(std::string bytes);

  storage::ValueType type() const { return meta_.type; }
  int64_t expire_ms() const { return meta_.expire_ms; }
  int64_t element_expire_ms() const { return meta_.element_expire_ms; }
  bool limit_passed() const { return meta_.limit_passed; }
  bool text() const { return meta_.text; }
  const std::optional<storage::Metadata::Collection>& collection() const {
    return meta_.collection;
  }
  std::string_view payload() const {
    return std::string_view(bytes_).substr(bytes_.size() - payload_bytes_);
  }
  // A copy to change and store; its payload points into this record.
  storage::Metadata metadata() const;
  const std::string& bytes() const { return bytes_; }  // as they are stored

 private:
  std::string bytes_;
  storage::Metadata meta_;
  size_t payload_bytes_ = 0;
  bool unread_ = false;
};

class KeyReader {
 public:
  KeyReader(storage::Reader& data, const DatabaseMap& databases, int64_t now_ms,
            AccessClock* access)
      : data_(data),
        databases_(&databases),
        now_ms_(now_ms),
        expired_by_ms_(now_ms),
        access_(access) {}
  virtual ~KeyReader() = default;

  // True when the key exists and has not expired. Marks the key as used.
  virtual bool find(int db, std::string_view key, Record* record);
  // The same without marking it, for OBJECT, TTL and DEBUG.
  virtual bool peek(int db, std::string_view key, Record* record);

  storage::Reader& data() { return data_; }
  const DatabaseMap& databases() const { return *databases_; }
  storage::KeyspaceId keyspace(int db) const { return (*databases_)[static_cast<size_t>(db)]; }
  int64_t now_ms() const { return now_ms_; }  // Unix; fixed for the command (EXEC, script)
  // What is due by then has expired: now, or never for the commands of a master, which alone says
  // what is gone.
  int64_t expired_by_ms() const { return expired_by_ms_; }
  void never_expire() { expired_by_ms_ = 0; }
  void expire_as(const KeyReader& other) { expired_by_ms_ = other.expired_by_ms_; }
  bool expired(const Record& record) const {
    return record.expire_ms() != 0 && record.expire_ms() <= expired_by_ms_;
  }
  virtual storage::KeyCounts counts(int db);
  AccessClock* access() const { return access_; }
  // Whether what is looked up counts as used; what is stored as a new value always does.
  void mark_access(bool mark) { marks_access_ = mark; }

  // Of find(), since construction; whoever runs the command adds them up when it succeeded.
  uint64_t hits = 0;
  uint64_t misses = 0;
  // Counts a look-up that was not by find() like one.
  void note_lookup(int db, std::string_view key, bool found) {
    found ? void(++hits) : note_miss(db, key);
  }
  struct KeyName {
    int db;
    std::string key;
  };
  // The keys that find() missed, if they are wanted (for the event "keymiss").
  bool keeps_missed = false;
  std::vector<KeyName> missed;
  // Some of those that had expired and stand there still, for whoever can remove them.
  static constexpr size_t kExpiredMax = 1024;
  std::vector<KeyName> expired_keys;

 protected:
  bool load(storage::KeyspaceId keyspace, std::string_view key, Record* record);
  bool assign(std::string bytes, Record* record);  // false, and latched: unreadable
  void note_miss(int db, std::string_view key) {
    ++misses;
    if (keeps_missed) missed.push_back({.db = db, .key = std::string(key)});
  }
  void mark_used(storage::KeyspaceId keyspace, std::string_view key);

  storage::Reader& data_;
  const DatabaseMap* databases_;
  int64_t now_ms_;
  int64_t expired_by_ms_;
  AccessClock* access_;
  bool marks_access_ = true;
};

// Hands out ids that are never used again, also not after a crash: of collections, or of keyspaces.
// Any thread.
class FreshIds {
 public:
  virtual ~FreshIds() = default;
  // 0, with the reason in `*failure`, when none can be had now; else that stays as it is.
  virtual uint64_t next(storage::Status* failure) = 0;
};

// A key that was overwritten without a look at its record, and what settles it: the times of that
// record.
struct Unread {
  storage::KeyspaceId keyspace;
  std::string key;
};
struct OldTimes {
  int64_t expire_ms;
  int64_t indexed_ms;
};

// What the writer keeps in memory of the committed state plus the group so far.
struct KeyspaceState {
  DatabaseMap databases;
  FreshIds* keyspace_ids = nullptr;           // null: nothing is flushed
  const FillingKeyspaces* filling = nullptr;  // null: none
  boost::unordered_flat_map<storage::KeyspaceId, storage::KeyCounts> counts;

  // The expiry index holds nothing before this key: a walk from there crosses no tombstones, of
  // which many may be of one time.
  std::string expiry_low_water;
  void set_expiry_low_water(std::string key);
  int64_t next_due_ms = 0;  // when an index entry is due next; INT64_MAX: none

  // Changes in this group, so that a command or a unit can be undone.
  struct CountChange {
    storage::KeyspaceId keyspace;
    int64_t keys;
    int64_t expires;
    int64_t collections;
  };
  void count(const CountChange& change);
  std::vector<CountChange> count_changes;
  std::vector<Unread> unread;
  bool any_unread(storage::KeyspaceId keyspace) const;
  struct Mapping {
    int db;
    storage::KeyspaceId before;
  };
  void map(int db, storage::KeyspaceId keyspace);
  std::vector<Mapping> databases_before;  // one for each change of `databases`
  std::vector<std::string> low_waters_before;

  OrderIndex orders;
  DrawnMembers drawn;

  struct Savepoint {
    size_t count_changes;
    size_t unread;
    size_t databases_before;
    size_t orders;
    size_t low_waters_before;
    int64_t next_due_ms;
  };
  Savepoint savepoint() const {
    return {count_changes.size(),     unread.size(), databases_before.size(), orders.savepoint(),
            low_waters_before.size(), next_due_ms};
  }
  void rollback(const Savepoint& savepoint);
  void end_group();  // committed, or rolled back to where it began
};

// What a unit did besides writing; released in order after the commit.
struct Effects {
  struct Touched {
    int db;
    std::string key;
    bool modified = true;  // false: those who wait for it are told, those who WATCH it are not
  };
  std::vector<Touched> touched;  // modified keys; collected only when somebody watches
  // Databases that changed places, with the keyspaces they had. With a == b one was flushed, or
  // another keyspace took the place of its own: then that is keyspace_b.
  struct Swapped {
    int a, b;
    storage::KeyspaceId keyspace_a, keyspace_b;
  };
  std::vector<Swapped> swapped;
  struct Watched {
    int db;
    std::string key;
    bool expired;
  };
  std::vector<Watched> watched;  // WATCH
  bool unwatch = false;          // UNWATCH: forgets what was watched before `watched`
  struct Unblocked {
    uint64_t client;
    bool as_error;
  };
  std::vector<Unblocked> unblocked;  // CLIENT UNBLOCK
  struct Pause {
    enum class What : uint8_t { kEnd, kChanges, kAll } what;
    int64_t until_ms = 0;  // Unix
  };
  std::vector<Pause> pauses;  // CLIENT PAUSE and UNPAUSE
  std::vector<storage::CollectionId> dropped_collections;
  std::vector<storage::KeyspaceId> dropped_keyspaces;
  Notices notices;
  Told told;  // replicas; collected only when there may be some
  // What FUNCTION has made of the libraries; null: they are as they were.
  std::shared_ptr<const script::Libraries> libraries;
  std::vector<std::shared_ptr<void>> kept;  // must live until the group is committed
  uint64_t lookup_hits = 0;                 // of writes that answer the old value, as GETDEL does
  uint64_t lookup_misses = 0;
  uint64_t expired_keys = 0;
  uint64_t changes = 0;  // rdb_changes_since_last_save

  // To take back what a failed command did.
  struct Savepoint {
    size_t touched, swapped, watched, unblocked, pauses, collections, keyspaces, kept;
    Notices::Savepoint notices;
    Told::Savepoint told;
    uint64_t expired_keys, changes;
    bool unwatch;
    std::shared_ptr<const script::Libraries> libraries;
  };
  Savepoint savepoint() const;
  void rollback(const Savepoint& savepoint);
};

// Who is told that a key was stored: those who WATCH it and those who wait for it, the latter
// alone, nobody.
enum class Touch : uint8_t { kModified, kFed, kQuiet };

// A keyspace that was filled beside the writer (filling_keyspaces.h), complete.
struct FilledKeyspace {
  storage::KeyspaceId id;
  storage::KeyCounts counts;  // without what has expired in it and was removed meanwhile
  int64_t first_due_ms;       // of its entries in the expiry index; INT64_MAX: it has none
};

class KeyWriter : public KeyReader {
 public:
  KeyWriter(storage::Overlay& overlay, KeyspaceState& state, FreshIds& ids, Effects& effects,
            int64_t now_ms, AccessClock* access, bool collect_touched);

  // As KeyReader's; a key that has expired is removed on the way.
  bool find(int db, std::string_view key, Record* record) override;
  bool peek(int db, std::string_view key, Record* record) override;
  // For who gives a key a new value whatever it holds, and needs to know nothing of the old one but
  // for store(): as peek(), but where only the disk can tell the record may be left unread. What it
  // was is settled later (exec/settling.h). `expires`: the new value does.
  bool peek_overwritten(int db, std::string_view key, bool expires, Record* record);
  // What peek_overwritten() may leave unread; nothing unless somebody settles it.
  enum class Overwrites : uint8_t { kRead, kReadIfExpiring, kUnread };
  void allow_overwrites(Overwrites overwrites) { overwrites_ = overwrites; }
  // What has expired is not removed. For clients of a replica, and in a pause: they change nothing.
  void keep_expired(bool keep) { keeps_expired_ = keep; }
  bool keeps_expired() const { return keeps_expired_; }
  // Makes good what store() left undone; `old`: nothing when there was no record. `counted`: the
  // counts are to know.
  void settle(const Unread& key, const std::optional<OldTimes>& old, int64_t overwritten_ms,
              bool counted);
  // A walk has found so many, at a state where `noted` was told.
  void correct_counts(storage::KeyspaceId keyspace, const storage::KeyCounts& noted,
                      const storage::KeyCounts& found);
  storage::KeyCounts counts(int db) override;

  // For WATCH; none of them removes anything.
  bool has_expired(int db, std::string_view key) { return is_stale_in(keyspace(db), key); }
  bool is_stale_in(storage::KeyspaceId keyspace, std::string_view key);
  bool stored_in(storage::KeyspaceId keyspace, std::string_view key);

  // Makes `after` the key's record. `before` is what find() or peek_overwritten() gave, or null
  // when it found nothing. A collection that only `before` has becomes garbage. after.indexed_ms is
  // filled in here.
  void store(int db, std::string_view key, const Record* before, storage::Metadata after,
             Touch touch = Touch::kModified);
  // Removes a key that find() gave; its collection becomes garbage. Constant time.
  void remove(int db, std::string_view key, const Record& before);
  // The same for a key whose record moves elsewhere: its collection lives on.
  void unlink(int db, std::string_view key, const Record& before);
  // A collection that no key names becomes garbage.
  void discard_collection(storage::CollectionId id);

  void flush(int db);       // constant time
  void swap(int a, int b);  // constant time
  // What was filled beside the writer becomes the database; what that held becomes garbage.
  // Constant time.
  void replace(int db, const FilledKeyspace& filled);

  // Removes what has expired by now_ms, oldest first, at most `limit` entries of the index from
  // this key on. The caller stores the answer in the state once the unit is kept.
  struct ExpiryProgress {
    std::string low_water;
    int64_t next_due_ms;
  };
  ExpiryProgress expire_due(size_t limit, std::string_view low_water);

  // When there is none, that latches, and what is written under it is undone with the unit.
  storage::CollectionId new_collection();
  storage::Overlay& overlay() { return overlay_; }
  OrderIndex& orders() { return state_.orders; }
  DrawnMembers& drawn() { return state_.drawn; }
  Effects& effects() { return effects_; }

  // A look-up of a command that writes, which counts although writes do not.
  void tell_lookup(int db, std::string_view key, bool found);
  // Marks a key as modified, as every store and remove does by itself.
  void touch(int db, std::string_view key, Touch touch = Touch::kModified);

  // Tells what happened to a key, after the commit, if anybody wants events of this kind. `name`
  // is static.
  void notify(uint32_t kind, std::string_view name, int db, std::string_view key) {
    if ((wanted_events_ & kind) == 0) return;
    effects_.notices.tell(Event{.kinds = kind | (wanted_events_ & notify::kForms),
                                .name = name,
                                .db = db,
                                .key = std::string(key)});
  }
  void want_events(uint32_t kinds) { wanted_events_ = kinds; }
  // Whether replicas are told what changes, which whoever changes it does. What expires, tells
  // itself.
  void tell_replicas(bool tell) { tells_replicas_ = tell; }
  bool tells_replicas() const { return tells_replicas_; }
  // Tells of every key that is changed, for those who track keys. `author`: the client whose
  // commands these are; 0: none.
  void tell_changes(uint64_t author) {
    tells_changes_ = true;
    author_ = author;
  }

 private:
  bool look_overwritten(int db, std::string_view key, bool expires, Record* record);
  bool find_any(int db, std::string_view key, Record* record);
  void drop(int db, std::string_view key, const Record& before, bool keep_collection);
  void drop_record(storage::KeyspaceId space, std::string_view key, const Record& before,
                   bool keep_collection);
  void map_database(int db, storage::KeyspaceId fresh);
  void expire(int db, std::string_view key, const Record& record);
  void settle_due(std::string_view index_key, const storage::ExpiryEntry& entry);
  void count(storage::KeyspaceId keyspace, int64_t keys, int64_t expires, int64_t collections);
  bool may_leave_unread(storage::KeyspaceId keyspace, bool expires);
  bool is_live(int db, std::string_view key, const Record& record);  // else it is removed
  void mark_collection(storage::KeyspaceId keyspace, std::string_view key,
                       const storage::Metadata& old, const storage::Metadata& after);
  int database_of(storage::KeyspaceId keyspace) const;  // -1: flushed
  void note_use(storage::KeyspaceId keyspace, std::string_view key);
  void note_stored(storage::KeyspaceId keyspace, std::string_view key, bool is_new);

  storage::Overlay& overlay_;
  KeyspaceState& state_;
  FreshIds& ids_;
  Effects& effects_;
  bool collect_touched_;
  uint32_t wanted_events_ = 0;
  bool tells_changes_ = false;
  bool tells_replicas_ = false;
  uint64_t author_ = 0;
  Overwrites overwrites_ = Overwrites::kRead;
  std::string used_;  // the key whose use was counted last, until one is stored
  bool keeps_expired_ = false;
};

}  // namespace ingot::types
