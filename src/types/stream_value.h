// What a stream is on disk: what it notes of itself, and elements (stream_bytes.h draws both):
//
//   0 | entry ID                          an entry
//   1 | group's name                      a consumer group
//   2 | group (u32be) | consumer's name   a consumer
//   3 | group (u32be) | entry ID          an entry that was delivered and not acknowledged
//   4 | group (u32be) | consumer (u32be) | entry ID   the same, found by its consumer
//
// A small stream is its key's record: behind the notes the elements are packed, in the order of
// their keys. One that would pass the limit becomes large for good: its elements stand in the data
// space behind a collection's id, the record keeps the notes, and Metadata::Collection::count is
// the number of entries. The notes name the IDs at the ends, so that nothing walks over what was
// trimmed.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "src/types/packed.h"
#include "src/types/stream_elements.h"
#include "src/types/stream_id.h"

namespace ingot::types {

// What Redis, too, keeps for a whole stream.
struct StreamNotes {
  StreamId first;        // of the entries; 0-0 without any
  StreamId last;         // the greatest that was ever given out
  StreamId max_deleted;  // by XDEL
  uint64_t added = 0;    // entries, ever
  uint32_t groups = 0;
  uint32_t next_group = 0;  // number
};

struct StreamConsumer {
  std::string name;
  uint32_t number = 0;
  int64_t seen_ms = 0;
  uint64_t pending = 0;
};

struct StreamGroup {
  std::string name;
  uint32_t number = 0;
  StreamId last;              // delivered
  int64_t entries_read = -1;  // -1: not known
  uint64_t pending = 0;
  uint32_t consumers = 0;
  uint32_t next_consumer = 0;  // number

  // What it counts without that consumer.
  void leave(const StreamConsumer& consumer) {
    pending -= consumer.pending;
    --consumers;
  }
};

struct StreamPending {
  StreamId id;
  std::string consumer;
  int64_t delivered_ms = 0;
  uint64_t deliveries = 0;
};

// Which first entries are removed.
struct StreamTrim {
  uint64_t length = 0;             // so many stay,
  std::optional<StreamId> min_id;  // or instead those from here on
  uint64_t at_most = UINT64_MAX;   // so many go
  uint64_t step = 1;               // and only so many at once
};

// The fields and values of a stored entry, in turn.
class StreamFields {
 public:
  explicit StreamFields(std::string_view packed) : packed_(packed) {}
  uint64_t count() const;  // of fields and values together
  PackedReader items() const { return PackedReader(packed_); }
  std::string_view packed() const { return packed_; }

 private:
  std::string_view packed_;
};

class StreamReader {
 public:
  // Requires a stream or no record; both must outlive this.
  StreamReader(storage::Reader& data, const Record& record);

  bool is_large() const { return elements_.is_large(); }
  storage::CollectionId id() const { return elements_.id(); }  // requires a large stream
  const StreamNotes& notes() const { return notes_; }
  uint64_t length() const { return length_; }

  // Each walk calls `each` until it returns false. Bounds are inclusive.
  using EachEntry = std::function<bool(StreamId id, const StreamFields& fields)>;
  void walk(StreamId first, StreamId last, bool reverse, const EachEntry& each) const;
  StreamId last_entry() const;  // requires one
  // How many entries are to go: whole steps. Calls `each` with the first ones, which may be more by
  // a part of a step, until it returns false.
  uint64_t walk_trimmed(const StreamTrim& trim, const std::function<bool(StreamId id)>& each) const;
  // Calls `each` at most once; false when there is no such entry.
  bool entry(StreamId id, const EachEntry& each) const;

  std::optional<StreamGroup> group(std::string_view name) const;
  void walk_groups(const std::function<bool(const StreamGroup&)>& each) const;
  std::optional<StreamConsumer> consumer(const StreamGroup& group, std::string_view name) const;
  void walk_consumers(const StreamGroup& group,
                      const std::function<bool(const StreamConsumer&)>& each) const;
  std::optional<StreamPending> pending(const StreamGroup& group, StreamId id) const;
  std::optional<StreamId> last_pending(const StreamGroup& group) const;
  using EachPending = std::function<bool(const StreamPending&)>;
  void walk_pending(const StreamGroup& group, StreamId first, const EachPending& each) const;
  // Those of one consumer.
  void walk_pending(const StreamGroup& group, const StreamConsumer& consumer, StreamId first,
                    const EachPending& each) const;

  // Redis' estimates: how many entries were ever added up to that ID, and how many a group still
  // has to read; nothing where it cannot be known.
  std::optional<int64_t> added_until(StreamId id) const;
  std::optional<int64_t> lag(const StreamGroup& group) const;
  // Whether XDEL took an entry from that ID on.
  bool deleted_since(StreamId id) const;

 private:
  friend class StreamWriter;
  // A stream that begins empty.
  explicit StreamReader(storage::Reader& data) : data_(data), elements_(data, std::string()) {}
  // Every element whose key begins with the prefix.
  void walk_prefix(const std::string& prefix, const StreamElements::Each& each) const;
  void latch_corrupt() const;

  storage::Reader& data_;
  StreamElements elements_;
  StreamNotes notes_;
  uint64_t length_ = 0;
};

// What is left of a large stream that is trimmed, or loses a group or a consumer. `changes` counts
// the entries, or is 1.
BuiltValue rest_of_stream(storage::Reader& data, const Record& record, const StreamTrim& trim,
                          const PutElement& put);
BuiltValue stream_without_group(storage::Reader& data, const Record& record,
                                const StreamGroup& group, const PutElement& put);
BuiltValue stream_without_consumer(storage::Reader& data, const Record& record,
                                   const StreamGroup& group, const StreamConsumer& consumer,
                                   const PutElement& put);

// Changes one stream; finish() makes the changes its key's record. Reading through it sees them.
class StreamWriter : public StreamReader {
 public:
  // `before` is what find() gave, or null: then the stream begins empty. It and `key` must outlive
  // this.
  StreamWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
               uint64_t inline_max_bytes);

  // These are going to be looked up one after another, among the entries or in what is pending in
  // the group: in memory that is done at once. Some at a time, each kept until the group ends.
  static constexpr size_t kLookedUpAhead = 64;
  void look_ahead(std::span<const StreamId> ids, const StreamGroup* group = nullptr);

  // Requires an ID above notes().last, and fields and values in turn.
  void add(StreamId id, std::span<const std::string_view> fields);
  bool remove(StreamId id);                        // true when it was there
  uint64_t remove(std::span<const StreamId> ids);  // how many were
  // How many went.
  uint64_t trim(const StreamTrim& trim);
  void set_notes(StreamId last, uint64_t added, StreamId max_deleted);

  // A group and a consumer are read, changed and stored again by the caller; what is pending is
  // counted in both by the functions below.
  StreamGroup create_group(std::string_view name, StreamId last, int64_t entries_read);
  void store(const StreamGroup& group);
  void destroy(const StreamGroup& group);
  StreamConsumer create_consumer(StreamGroup* group, std::string_view name, int64_t now_ms);
  void store(const StreamGroup& group, const StreamConsumer& consumer);
  void store(const StreamGroup& group, const StreamPending& pending);  // of the same owner
  void remove(StreamGroup* group, const StreamConsumer& consumer);

  // Makes the entry pending for `*consumer`. `before` is what pending() gave for it, or null; an
  // earlier owner is stored.
  void give(StreamGroup* group, StreamConsumer* consumer, const StreamPending& pending,
            const StreamPending* before);
  // The entry is pending no more. `consumer` is the owner, or another, or null: an owner that is
  // not `*consumer` is stored.
  void release(StreamGroup* group, const StreamPending& pending,
               StreamConsumer* consumer = nullptr);

  // Stores what has changed. As in Redis, only a change of the entries, or a new stream, modifies
  // the key.
  void finish(Touch touch = Touch::kQuiet);

 private:
  void put(const std::string& key, std::string_view value);
  void note_growth();
  void erase(std::string_view key);
  void erase_all(const std::string& prefix);
  void find_first();
  bool take_out(StreamId id);  // all but find_first()
  void disown(StreamGroup* group, const StreamPending& pending, StreamConsumer* consumer);

  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const Record* const before_;
  const uint64_t inline_max_bytes_;
  storage::Metadata after_;
  bool changed_ = false;
  bool first_is_gone_ = false;  // notes_.first is, until find_first()
};

}  // namespace ingot::types
