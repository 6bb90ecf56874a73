// The two count levels (counted_order.h) of the orders that the writer has changed lately, in
// memory: a change then looks up nothing but the leaf that it changes. They hold what the records
// hold, those of the writer's group included, and are taken back with them. And which leaves were
// met lately.
//
// The writer's thread; a dry run has its own.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/leaf_bounds.h"
#include "storage/codec.h"

namespace ingot::types {

// A record of an order: the key's part behind the level, and how many items are in it.
struct OrderNode {
  std::string bound;
  uint64_t count = 0;
  bool is_last() const { return bound.front() != 0; }
};

class OrderIndex {
 public:
  using Nodes = std::vector<OrderNode>;  // by bound

  // The first node of these whose bound is not before `bound`; Nodes::end() when there is none.
  static Nodes::const_iterator find(const Nodes& nodes, std::string_view bound);

  // One of the levels of a collection; null when it is not loaded.
  const Nodes* nodes(storage::CollectionId id, int level) const;
  // A level as it was read: with changes of this group in it, or with none, and then it stays when
  // the group's are taken back.
  void load(storage::CollectionId id, int level, Nodes nodes);
  void load_committed(storage::CollectionId id, int level, Nodes nodes);

  // A level could not be read to its end, since the last take_missed().
  void note_missed() { missed_ = true; }
  bool take_missed() { return std::exchange(missed_, false); }
  // For a dry run of what found all levels loaded: they need not be read again, and count as empty.
  void leave_unread() { unread_ = true; }
  bool is_left_unread() const { return unread_; }

  // Of a level that is loaded.
  void set(storage::CollectionId id, int level, const OrderNode& node);
  void erase(storage::CollectionId id, int level, std::string_view bound);

  LeafBounds& leaves() { return leaves_; }
  // A leaf goes; it may come back with its unit.
  void erase_leaf(storage::CollectionId id, std::string_view bound);

  // A bound behind which all leaves but the last of all are empty; "" when none is known.
  std::string_view last_filled(storage::CollectionId id) const;
  void note_last_filled(storage::CollectionId id, std::string_view bound);

  size_t savepoint() const { return undo_.size(); }
  void rollback(size_t savepoint);
  // The group is over. What takes too much memory is forgotten, the longest unchanged first.
  void end_group();

 private:
  struct Undo {
    storage::CollectionId id;
    int level;
    std::string bound;  // empty: the level was loaded
    std::optional<uint64_t> count;
    bool is_leaf = false;  // which was erased
  };
  struct Hash {
    using is_avalanching = void;
    size_t operator()(const std::pair<storage::CollectionId, int>& key) const noexcept;
  };

  using Key = std::pair<storage::CollectionId, int>;
  struct Level {
    Nodes nodes;
    std::list<Key>::iterator place;  // in by_change_
  };

  Nodes& changed(const Key& key);
  void forget(const Key& key);
  void restore(const Undo& undo);

  boost::unordered_flat_map<Key, Level, Hash> levels_;
  std::list<Key> by_change_;  // the level that was changed last stands last
  std::vector<Undo> undo_;    // what this group changed
  size_t nodes_ = 0;          // of all levels
  boost::unordered_flat_map<storage::CollectionId, std::string> last_filled_;
  LeafBounds leaves_;
  bool missed_ = false;
  bool unread_ = false;
};

}  // namespace ingot::types
