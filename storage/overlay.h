// The engine plus the changes of one commit group that has not been committed yet. A flat hash for
// point reads; an order over the changed keys is built only when somebody iterates.
//
// One thread at a time (the writer; a dry run has its own). Changes are undone to a savepoint in
// reverse order. Bytes live in an arena that is given back by clear().
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/engine.h"
#include "storage/hashed_key.h"
#include "storage/reader.h"

namespace ingot::storage {

// Bytes that live until the next clear(), which keeps the last block unless it is huge. Blocks
// grow: some arenas hold one small record and go.
class Arena {
 public:
  std::string_view copy(std::string_view bytes);
  // `head` and `tail` joined, and `spare` bytes behind them.
  std::string_view join(std::string_view head, std::string_view tail, size_t spare = 0);
  // Of a type that needs no destructor.
  template <typename T>
  T* create(const T& value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T(value);
  }
  void clear();
  size_t bytes() const { return bytes_; }

 private:
  char* allocate(size_t bytes, size_t alignment = 1);

  static constexpr size_t kFirstBlockBytes = 8 << 10;
  static constexpr size_t kBlockBytes = 256 << 10;
  struct Block {
    std::unique_ptr<char[]> data;
    size_t capacity;
  };
  std::vector<Block> blocks_;
  size_t used_ = 0;   // of the last block
  size_t bytes_ = 0;  // of all blocks
};

class Overlay : public Reader {
 public:
  // How far back an undo goes; from savepoint(), good until the next clear().
  using Savepoint = size_t;

  // `snapshot` null: the latest state, which only this overlay's owner changes; only then is
  // `cache` used. It and `counts` may be null. All must outlive the overlay.
  Overlay(Engine& engine, const Snapshot* snapshot, Tier tier, RecordCache* cache = nullptr,
          OrderCounts* counts = nullptr);

  const Snapshot* snapshot() const override { return snapshot_; }
  Overlay* overlay() override { return this; }
  // Of the orders that are committed.
  OrderCounts* order_counts() const override { return counts_; }
  bool get(Space space, std::string_view key, std::string* value) override;
  // What memory knows: kMiss where only the disk can tell. Latches nothing.
  Lookup probe(Space space, std::string_view key, std::string* value);
  std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                 std::string_view upper) override;
  void uncommitted(
      Space space, std::string_view lower, std::string_view upper,
      const std::function<void(std::string_view key, std::string_view value)>& each) override;

  // `value` is copied and must not be empty. Invalidates no cursor, but a cursor sees a change
  // only after its next seek.
  void put(Space space, std::string_view key, std::string_view value);
  // The same of a record that is certainly not there, and will not be looked up soon: it is not
  // taken into the cache.
  void put_new(Space space, std::string_view key, std::string_view value);
  void remove(Space space, std::string_view key);
  // Appends `head` and `tail` to a record that was put since the last clear(), in constant time as
  // a rule; false when none was, or `takes_it` does not want that of its value.
  bool extend(Space space, std::string_view key,
              const std::function<bool(std::string_view value)>& takes_it, std::string_view head,
              std::string_view tail);

  // Of what is committed, without the changes. Latches nothing.
  std::unique_ptr<Cursor> committed_cursor(Space space, std::string_view lower,
                                           std::string_view upper) const;
  // Before a change of an order of this revision; what it was before the first one is told until
  // clear().
  void note_order(CollectionId id, uint32_t revision) { orders_.emplace(id, revision); }
  std::optional<uint32_t> committed_revision(CollectionId id) const {
    const auto found = orders_.find(id);
    return found == orders_.end() ? std::nullopt : std::optional(found->second);
  }

  // Whoever reads here pays for each change: a commit before long makes it cheap. Until clear().
  void want_commit() { wants_commit_ = true; }
  bool wants_commit() const { return wants_commit_; }

  Savepoint savepoint() const { return undo_.size(); }
  void rollback(Savepoint savepoint);

  bool empty() const { return changes_.empty(); }
  bool changes(Space space, std::string_view lower,
               std::string_view upper);  // any of [lower, upper)
  size_t size() const { return changes_.size(); }
  size_t bytes() const;  // held until clear()
  void write_to(Batch* batch) const;
  // The changes of elements (kData and kOrder), in order; null stands for a removal.
  using EachChange =
      std::function<void(Space space, std::string_view key, const std::string_view* value)>;
  void each_element(const EachChange& each) const;
  void each_change(const EachChange& each) const;  // of all spaces, in no order
  // Those of [lower, upper) alone, in order, until it returns false.
  void each_change(
      Space space, std::string_view lower, std::string_view upper,
      const std::function<bool(std::string_view key, const std::string_view* value)>& each);
  // As each_element(), and forgets these, for whoever writes them to where this overlay reads. No
  // savepoint or cursor outlives it.
  void take_elements(const EachChange& each);
  // Takes the records of [lower, upper) that the engine has, at most some kilobytes of them, into
  // the cache: whoever is going to look them up one by one finds them there. `each` hears of them;
  // the group may have removed one. Nothing without a cache; latches nothing.
  void read_ahead(Space space, std::string_view lower, std::string_view upper,
                  const std::function<void(std::string_view key)>& each);

  // Looks all of these up at once, as far as memory knows them, for whoever is going to ask for one
  // after the other: what is there comes into the cache, and what is not is known until clear().
  // Nothing without a cache; latches nothing.
  void look_ahead(std::span<const HashedKey> keys);

  // Around the engine's commit of what write_to() gave.
  void begin_cache_changes();
  void end_cache_changes(bool committed);
  void clear();

  // Whether reads that memory cannot answer may go to the disk.
  void set_tier(Tier tier) { tier_ = tier; }

 private:
  friend class OverlayCursor;
  struct State {
    std::string_view value;
    bool removed = false;
    bool is_new = false;  // was not there before the group, nor is in the cache
    uint32_t spare = 0;   // bytes behind the value that are its own
  };
  struct Change {
    HashedKey at;
    State now;

    const std::string_view* value() const { return now.removed ? nullptr : &now.value; }
  };
  struct Undo {
    Change* change;
    const State* before;  // null where this was its first change
  };
  // Changes are found by their keys.
  static const HashedKey& key_of(const Change* change) { return change->at; }
  static const HashedKey& key_of(const HashedKey& key) { return key; }
  static const SpaceKey& key_of(const SpaceKey& key) { return key; }
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    size_t operator()(const auto& each) const { return key_of(each).hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return key_of(a) == key_of(b); }
  };
  struct Less {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return key_of(a) < key_of(b); }
  };
  using Ordered = std::set<Change*, Less>;

  void change(Space space, std::string_view key, State now);
  Change* changed(const HashedKey& key) const;
  // Once for each changed key, in the order of their first changes.
  template <typename Each>
  void each(const Each& each) const;
  Lookup look_up(Space space, std::string_view key, Tier tier, std::string* value, Status* status);
  std::vector<const Change*> sorted_changes() const;
  const Ordered& order();  // of all spaces, built on first use

  Engine& engine_;
  const Snapshot* snapshot_;
  RecordCache* const cache_;
  OrderCounts* const counts_;
  Tier tier_;
  Arena arena_;  // has the changes, their keys and values, and what was before them
  boost::unordered_flat_set<Change*, Hash, Equal> changes_;
  boost::unordered_flat_set<HashedKey, HashOfKey, std::equal_to<>> absent_;  // by look_ahead()
  std::vector<RecordCache::Changing> changing_;  // as the changes follow on each other
  std::vector<Undo> undo_;
  Ordered order_;
  bool ordered_ = false;
  bool wants_commit_ = false;
  boost::unordered_flat_map<CollectionId, uint32_t> orders_;  // see note_order()
};

}  // namespace ingot::storage
