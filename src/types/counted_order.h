// A long ordered sequence of *items* (any bytes but none; of a sorted set score and member, of a
// list the labels) in which ranks are found: how many items stand before one, and which stands at a
// rank, in tens of microseconds for a million of them. Three levels of records in the order space:
//
//   collection id (u64be) | 1 | bound  ->  u32le count | items, packed      leaves: the items
//   collection id (u64be) | 2 | bound  ->  u64le count                      over many leaves
//   collection id (u64be) | 3 | bound  ->  u64le count                      over many of those
//
//   bound   0 | the last item that may stand in it    or    1, of the last record of a level
//
// A record holds what stands behind the record before it, up to its own bound; a bound of a level
// is a bound of the levels below, too. So the record of an item is the first one at or behind it:
// one seek forward. An empty item before another marks that one (a flag for the owner).
//
// A leaf that grows is split, one that is nearly empty joins the next. Few records come and go, so
// that walks meet few tombstones however often items are moved.
//
// Failures latch in the reader. One thread at a time. It keeps a cursor, so it is for one command:
// it does not see what is committed later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/order_index.h"
#include "src/types/packed.h"
#include "src/types/pending_counts.h"
#include "storage/codec.h"
#include "storage/order_counts.h"
#include "storage/overlay.h"
#include "storage/reader.h"

namespace ingot::types {

// The records, for the classes below.
class CountedOrderForm {
 protected:
  enum Level : char { kLeaf = 1, kMiddle = 2, kTop = 3 };
  static constexpr Level kDown[] = {kTop, kMiddle, kLeaf};
  // A look-up walks records of each level: with a million items some 15, 50 and 40. A leaf is
  // rewritten whole with each change in it, so it is small.
  static constexpr size_t kLeafItems = 8;
  static constexpr size_t kLeafBytes = 1024;
  // Leaves seldom join, so that few split again and few records come and go.
  static constexpr size_t kLeafItemsMin = 2;
  static constexpr size_t kLeafItemsJoined = kLeafItems / 2;
  static constexpr size_t kLeafBytesJoined = kLeafBytes / 2;
  static constexpr uint64_t kNodeMax[] = {0, 0, 512, 512 * 96};  // by level
  static constexpr std::string_view kLastBound{"\1", 1};
  static std::string bound_of(std::string_view item);
  // Of a leaf that ends with `left`, where the next one begins with `right`.
  static std::string bound_between(std::string_view left, std::string_view right);
  using Node = OrderNode;
  struct Item {
    std::string bytes;
    bool marked = false;
  };
  struct Leaf {
    std::string bound;
    std::vector<Item> items;
    size_t bytes() const;
  };
  static std::string element(Level level, std::string_view bound);  // the key behind the id
  static std::string encode(const Node& node);
  static std::string encode(const Leaf& leaf);
};

class CountedOrder : protected CountedOrderForm {
 public:
  // No item stands before `low`: nothing walks over the records that were there. With the revision
  // of the collection, ranks are found in memory where they are asked for often.
  CountedOrder(storage::Reader& data, storage::CollectionId id, std::string_view low,
               std::optional<uint32_t> revision = std::nullopt)
      : data_(data), id_(id), low_(low) {
    if (revision) counts_.emplace(data, id, *revision);
  }

  // How many items are smaller.
  uint64_t rank(std::string_view item);
  // The item with so many before it; nothing when there is none.
  std::optional<std::string> at(uint64_t rank);
  // Calls `each` for the items from that rank on, towards either end, until it returns false.
  using Each = std::function<bool(std::string_view item, bool marked)>;
  void walk(uint64_t rank, bool reverse, const Each& each);
  // The same forward, from the first item that is not smaller than `item`.
  void walk_from(std::string_view item, const Each& each);

  // For a reply that goes on reading later: the leaves that hold the items of the ranks
  // [first, end), not empty, and the first and the last of the items.
  struct Leaves {
    std::string lower, upper;  // keys in the order space, [lower, upper)
    std::string first, last;
  };
  std::optional<Leaves> leaves(uint64_t first, uint64_t end);
  // The items in a leaf's record; false when it is none.
  template <typename EachItem>
  static bool read_leaf(std::string_view record, const EachItem& each) {
    if (record.size() < sizeof(uint32_t)) return false;
    PackedReader reader(record.substr(sizeof(uint32_t)));
    bool marked = false;
    for (std::string_view item; reader.next(&item);) {
      if (item.empty()) {
        marked = true;
      } else if (!each(item, std::exchange(marked, false))) {
        return true;
      }
    }
    return !reader.broken();
  }

  void set_low(std::string_view low) { low_ = low; }

 protected:
  std::string key(Level level, std::string_view bound) const;
  storage::Cursor& cursor();
  bool on_level(Level level) const;
  // Of the record that the cursor stands on; bound() is good until it moves.
  std::string_view bound() const;
  uint64_t count();
  Node node();
  Leaf leaf();
  void latch_unreadable();
  template <typename EachItem>
  void read_leaf_here(const EachItem& each);
  // Moves the cursor to the leaf of an item; false when the sequence has none yet.
  bool seek_leaf(std::string_view item);
  // Moves the cursor to the first record of a level behind a bound of a level above ("": to the
  // first).
  void seek_behind(Level level, std::string_view bound);
  // Moves the cursor to the leaf with that rank, and tells which of its items it is.
  std::optional<size_t> seek_rank(uint64_t rank);
  void walk_here(std::optional<size_t> index, bool reverse, const Each& each);
  // Of the leaf that the cursor stands on; nothing when its record is broken.
  std::optional<std::string> item_in_leaf(size_t index);

  using Counts = PendingCounts::Counts;
  // Whoever finds nothing walks, and puts what is missing afterwards.
  template <typename Ask>
  std::optional<Counts::Leaf> known_leaf(const Ask& ask);
  bool walk_known(uint64_t* rank, bool reverse, const Each& each);
  void put_missing(std::string_view bound);
  void put_missing_here(std::string_view bound);

  storage::Reader& data_;
  const storage::CollectionId id_;
  std::string low_;
  std::optional<PendingCounts> counts_;
  std::optional<Counts::Missing> missing_;
  std::unique_ptr<storage::Cursor> cursor_;  // over all levels
};

class CountedOrderWriter : public CountedOrder {
 public:
  CountedOrderWriter(storage::Overlay& overlay, OrderIndex& index, storage::CollectionId id,
                     std::string_view low)
      : CountedOrder(overlay, id, low), overlay_(overlay), index_(index) {}

  // The ends of the sequence. The first where its leaf tells, without a walk.
  struct EndItem {
    std::string item;
    bool marked;
  };
  std::optional<EndItem> lowest();
  std::optional<EndItem> highest();
  // Calls `each` for the items from the last one backward, until it returns false. No rank is
  // sought.
  void walk_from_last(const Each& each);

  // Requires that the item is not there.
  void add(std::string_view item, bool marked = false);
  // Requires that it is there. The item behind it, where that is cheap to tell.
  std::optional<std::string> remove(std::string_view item);
  // Removes the items from `first` to `last`, leaf by leaf, and calls `each` with them.
  void remove_between(std::string_view first, std::string_view last,
                      const std::function<void(std::string_view item)>& each);
  // Removes one item and adds another; cheaper where they are near each other.
  void move(std::string_view from, std::string_view to, bool marked);

 private:
  const OrderIndex::Nodes& nodes(Level level);
  // The record of an item on a level above the leaves; nothing when there is none yet.
  std::optional<Node> find_node(Level level, std::string_view item);
  struct StoredLeaf {
    std::string bound;
    std::string record;
    std::optional<std::string> item_behind = std::nullopt;  // what was taken out of it
  };
  // Of an item; nothing when the sequence has none yet.
  std::optional<StoredLeaf> find_leaf(std::string_view item);
  std::optional<StoredLeaf> find_leaf_behind(std::string_view bound);
  void join(std::string_view bound);
  static Leaf decoded(const StoredLeaf& stored);
  bool seek_last();
  void fill(std::string_view bound);
  void insert(std::string_view item, bool marked);        // into its leaf alone
  std::optional<StoredLeaf> take(std::string_view item);  // out of its leaf alone
  void put(Level level, const Node& node);
  void put(const Leaf& leaf);
  void put(const StoredLeaf& leaf);
  void erase(Level level, std::string_view bound);
  void split(Leaf leaf);
  void split(Level level, const Node& node);
  void change(Level level, std::string_view item, int64_t by);
  void shrink(const Leaf& leaf, std::string_view item);

  storage::Overlay& overlay_;
  OrderIndex& index_;
};

// What a change in the order space is of an order; nothing when it is of none.
struct OrderChange {
  storage::CollectionId id;
  storage::OrderCounts::Change change;
};
std::optional<OrderChange> order_change(std::string_view key, const std::string_view* record);
// Where the leaves of an order stand: [first, second).
std::pair<std::string, std::string> leaves_of_order(storage::CollectionId id);

// What somebody else's writer changed of an order, for the index of this one: the key of a record
// in the order space, and the record, or null when it went.
void follow_order(OrderIndex& index, std::string_view key, const std::string_view* record);

// Makes a sequence of which nothing is there yet.
class CountedOrderBuilder : CountedOrderForm {
 public:
  explicit CountedOrderBuilder(PutElement put) : put_(std::move(put)) {}

  void add(std::string_view item, bool marked = false);  // requires rising items
  void finish();

 private:
  void flush(std::string bound);

  const PutElement put_;
  Leaf leaf_;
  uint64_t middle_ = 0, top_ = 0;  // items in the records that are not put yet
};

}  // namespace ingot::types
