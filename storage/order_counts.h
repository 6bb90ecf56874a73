// The counts of large orders that are asked for ranks, in memory: a rank is a sum of numbers here,
// where the engine steps over a hundred records, most of them written anew again and again.
//
// An order has records of three levels, each with a bound and a count (src/types/counted_order.h):
// 3 and 2 count what is in the records of the level below that stand behind the record before it,
// up to its own bound; 1 are the leaves. Of an order one revision is known, which readers put piece
// by piece as they walk, and the writer takes along from commit to commit. What an order held at a
// revision never changes, so whoever has read the revision can ask at any time.
//
// Threads: any.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/codec.h"

namespace ingot::storage {

class OrderCounts {
 public:
  static constexpr int kLeaf = 1;
  static constexpr int kTop = 3;

  // A leaf, and how many items stand before it.
  struct Leaf {
    std::string bound;
    uint64_t before = 0;
    uint64_t count = 0;
  };
  // Records that had better be put(): all of a level with bounds in (behind, last]; "" is open.
  struct Missing {
    int level;
    std::string behind, last;
  };
  struct Answer {
    std::optional<Leaf> leaf;        // nothing: it is not known
    std::optional<Missing> missing;  // asked for often enough to be worth it
  };
  // The first leaf whose bound is not before `bound`.
  Answer leaf_of(CollectionId id, uint32_t revision, std::string_view bound);
  // The leaf with the item that has so many before it.
  Answer leaf_at(CollectionId id, uint32_t revision, uint64_t rank);

  struct Node {
    std::string bound;
    uint64_t count = 0;
  };
  // All records that one of the level above counts, or of the whole level kTop, as they were read
  // at this revision. Taken where the revision is the one that is known; of kTop always.
  void put(CollectionId id, uint32_t revision, int level, std::vector<Node> nodes);

  // What a commit changes; a null count: the record goes.
  struct Change {
    int level;
    std::string_view bound;
    std::optional<uint64_t> count;
  };
  bool holds(CollectionId id) const;
  bool holds_any() const { return any_.load(std::memory_order_relaxed); }
  // The writer, before anybody can read the new revision. Forgets the order unless `before` is
  // known.
  void follow(CollectionId id, uint32_t before, uint32_t after, std::span<const Change> changes);
  void forget(CollectionId id);

  // What is more goes when the next is put. 0: holds nothing.
  void set_capacity(uint64_t bytes);
  uint64_t bytes() const;

 private:
  struct Record {
    std::string bound;
    uint64_t count = 0;
    bool known = false;  // `below` is all that it counts
    uint8_t asked = 0;   // for what is below, in vain
    std::vector<Record> below;
  };
  using Records = std::vector<Record>;
  struct Order {
    CollectionId id;
    uint32_t revision;
    uint8_t asked = 0;
    bool used = false;  // since it was last considered for eviction
    uint64_t bytes = 0;
    Records top;  // empty: not known
  };
  using Queue = std::list<Order>;

  template <typename Find>
  Answer ask(CollectionId id, uint32_t revision, const Find& find);
  static uint64_t bytes_of(const Record& record);
  static uint64_t bytes_of(const Records& records);
  Order* find_order(CollectionId id, uint32_t revision, Queue* gone);
  Records* records(Order& order, int level, std::string_view bound);
  void resize(Order& order, uint64_t more, uint64_t less);
  [[nodiscard]] bool remove(Order& order, const Change& change);
  [[nodiscard]] bool set(Order& order, const Change& change);
  // To `gone`, which is destroyed without the mutex: an order may have a hundred thousand records.
  void erase(Queue::iterator at, Queue* gone);
  void make_room(Queue* gone);

  mutable std::mutex mutex_;
  // All by mutex_:
  boost::unordered_flat_map<CollectionId, Queue::iterator> orders_;
  Queue queue_;  // the next to be considered for eviction first
  uint64_t bytes_ = 0;
  uint64_t capacity_ = 0;
  std::atomic<bool> any_{false};
};

}  // namespace ingot::storage
