// A cache of hot records and elements in front of the engine: a hit costs a hash look-up where the
// engine searches its memtables and blocks. It holds committed, latest state only.
//
// Never stale, by this protocol: who changes records calls begin_changes() and begin_change() for
// each before the engine commits, and end_changes() and end_change() afterwards, before anybody is
// told. In between the record is not cached. Readers ask for the moment before they read the
// engine, or take the snapshot that they read it at: what they put back, or take, is refused where
// a change of the shard began after that, or had not ended by then.
//
// Threads: everything by any thread; changes by one at a time (the writer).
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/entry_places.h"
#include "storage/hashed_key.h"

namespace ingot::storage {

class RecordCache {
  struct Entry;

 public:
  // Longer records are left to the engine: they would push out many short ones.
  static constexpr size_t kRecordBytesMax = 2048;

  explicit RecordCache(uint64_t capacity_bytes) { set_capacity(capacity_bytes); }
  ~RecordCache();
  RecordCache(const RecordCache&) = delete;
  RecordCache& operator=(const RecordCache&) = delete;

  // Whether all changes of the space's records come by here.
  static bool takes(Space space) {
    return space == Space::kMeta || space == Space::kData || space == Space::kOrder;
  }

  // Before which changes what is read stands.
  using Moment = uint64_t;
  Moment now() const { return moment_.load(std::memory_order_acquire); }
  // True and the latest record in `*value`.
  bool get(const HashedKey& key, std::string* value);
  // True and the record as a snapshot has it that was taken after `moment`.
  bool get_at(Moment moment, const HashedKey& key, std::string* value);
  // Brings the records nearer to the processor, all at once: who looks them up one after the other
  // waits for memory each time. Those that are not there are added to `missing`, unless it is null.
  void prefetch(std::span<const HashedKey> keys, std::vector<HashedKey>* missing);
  // The same as get() for who only wants to know: counts as no use.
  bool peek(const HashedKey& key, std::string* value);
  // What the engine answered, of its state at any time after `moment`.
  void fill(Moment moment, const HashedKey& key, std::string_view value);
  // The same of what came from the disk: kept when it comes for a second time soon. What is read
  // once would push out what is read again and again.
  void fill_from_disk(Moment moment, const HashedKey& key, std::string_view value);

  // By who changes the records, between changes: what the engine has.
  void add(const HashedKey& key, std::string_view value);

  void begin_changes();
  void begin_new();  // a change of a record that was not there, which comes by neither of those two
  void end_changes();  // what was committed is what the engine answers
  // What begin_change() has found, for the end_change() of the same record.
  using Changing = Entry*;
  Changing begin_change(const HashedKey& key);
  static void prefetch(Changing changing);
  // `value` empty: the record was removed, or nobody knows what it is now.
  void end_change(const HashedKey& key, Changing changing, std::string_view value);

  // 0: holds nothing. Whoever looks a record up meanwhile waits for some of the evictions only.
  void set_capacity(uint64_t bytes);

  uint64_t capacity() const { return kShards * shard_bytes_max_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return sum(&Shard::bytes); }
  uint64_t hits() const { return sum(&Shard::hits); }

 private:
  static constexpr size_t kShards = 64;

  struct Entry : boost::intrusive::list_base_hook<> {
    uint64_t hash;
    uint16_t key_bytes;
    uint16_t value_bytes;
    Space space;
    bool used;      // since it was last considered for eviction
    bool changing;  // the value is not to be seen, and the entry stays where it is

    char* data() { return reinterpret_cast<char*>(this + 1); }
    char* value() { return data() + key_bytes; }
    size_t bytes() const { return sizeof(Entry) + key_bytes + value_bytes; }
    bool is(const HashedKey& key) {
      return space == key.space && std::string_view(data(), key_bytes) == key.key;
    }
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    // All by mutex:
    EntryPlaces<Entry> entries;
    boost::intrusive::list<Entry> queue;  // the next to be considered for eviction first
    std::vector<uint16_t> seen;           // marks of what came from the disk lately, by hash
    uint64_t bytes = 0;
    uint64_t hits = 0;
    Moment changed = 0;     // when the last change began
    uint32_t changing = 0;  // begun and not ended
  };

  Shard& shard_of(const HashedKey& key);
  static Entry* find(Shard& shard, const HashedKey& key);
  static bool take(Shard& shard, const HashedKey& key, std::string* value);
  void set(Shard& shard, Entry* old, const HashedKey& key, std::string_view value);
  static bool unchanged_since(const Shard& shard, Moment moment) {
    return shard.changing == 0 && shard.changed < moment;
  }
  static bool note_seen(Shard& shard, uint64_t hash);  // true: it was already
  static void drop(Shard& shard, Entry* entry);
  void make_room(Shard& shard);
  bool is_over(const Shard& shard) const {
    return shard.bytes > shard_bytes_max_.load(std::memory_order_relaxed);
  }
  uint64_t sum(uint64_t Shard::*figure) const;

  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> shard_bytes_max_{0};
  // Odd while changes are committed: then it is also that of each of them.
  std::atomic<Moment> moment_{2};
  std::atomic<Moment> new_since_{0};  // when the last change of a new record began
};

}  // namespace ingot::storage
