// The order of a memtable's entries: a B+-tree with eight bytes of each key inside its nodes, so
// that an insertion misses the processor's cache some three times where a skip list does twenty
// times.
//
// An entry is RocksDB's: a length-prefixed internal key (user key, and eight bytes with its
// sequence number), whatever follows. Entries are never removed and must not move. One thread
// inserts; any others read meanwhile without a lock: a node has a version, which is odd while its
// entries are divided, and who finds it changed looks again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "storage/rocksdb/node_heads.h"

namespace ingot::storage {

class MemtableTree {
 public:
  // Memory that lives as long as the tree, aligned to eight bytes.
  using Allocate = std::function<char*(size_t bytes)>;

  explicit MemtableTree(Allocate allocate);
  MemtableTree(const MemtableTree&) = delete;
  MemtableTree& operator=(const MemtableTree&) = delete;

  static std::string_view internal_key_of(const char* entry);

  // No entry with this internal key may be there.
  void insert(const char* entry);

  // Brings what insert() will look at for these internal keys nearer to the processor, for many of
  // them at once: one after the other they wait for memory on each level. By any thread; of keys
  // that are in order the upper nodes are fetched once.
  void prefetch(std::span<const std::string_view> internal_keys) const;

 private:
  static constexpr int kPlaces = kNodePlaces;

  // The slots are filled from the first on; `order` tells in which order their keys are, so that an
  // insertion moves nothing that somebody may be reading.
  struct Node {
    std::atomic<uint64_t> order{
        0};  // the count, and the slots of the keys in order: four bits each
    std::atomic<uint32_t> version{0};
    std::atomic<uint32_t> skip{0};     // bytes that the user keys of all that may stand here share
    std::atomic<Node*> next{nullptr};  // on the same level
    const char* low = nullptr;  // the first entry that may stand here; null: there is no bound
    bool is_leaf = true;
    NodeHeads heads;                                      // eight bytes of each key, behind `skip`
    std::array<std::atomic<const void*>, kPlaces> slots;  // entries; nodes of the level below
  };
  struct Key;
  class Order;
  // A place in a node as it was at a version.
  struct Spot {
    const Node* node = nullptr;
    uint32_t version = 0;
    uint64_t order = 0;
    int place = 0;
    const char* entry = nullptr;  // null: none
  };

 public:
  // Stands on an entry, or on none. One thread at a time; sees what was inserted before its last
  // move began, and maybe later ones.
  class Cursor {
   public:
    explicit Cursor(const MemtableTree& tree) : tree_(tree) {}
    const char* entry() const { return spot_.entry; }   // null: none
    void seek(std::string_view internal_key);           // the first that is not before
    void seek_for_prev(std::string_view internal_key);  // the last that is not after
    void seek_to_first();
    void seek_to_last();
    void next();  // requires an entry
    void prev();  // requires an entry

   private:
    const MemtableTree& tree_;
    Spot spot_;
  };

 private:
  Node* new_node(bool is_leaf, const char* low);
  void split(Node* parent, Node* child, const Key& for_key);
  static void fill(Node* node, const void* const* slots, const uint64_t* heads, int count,
                   uint32_t skip, uint32_t skip_of_heads);
  static void put(Node* node, const void* slot, const Key& key);

  static const char* entry_at(const Node& node, int slot);
  static int places_before(const Node& node, uint64_t order, const Key& key, bool or_equal);
  static const Node* child_for(const Node& parent, const Key& key);
  static void prefetch_equal(const Node& leaf, const Key& key);
  // The leaf, and the place there, behind those keys that `places_before` counts in each node.
  template <typename PlacesBefore>
  Spot descend(const PlacesBefore& places_before) const;
  template <typename PlacesBefore>
  Spot find_last(const PlacesBefore& places_before) const;
  Spot find_first(const Key& key) const;  // not before
  Spot find_before(const Key& key) const;
  Spot first_of(const Node* leaf) const;
  static void prefetch_entries(const Spot& at);

  const Allocate allocate_;
  Node* const first_;  // leaf
  std::atomic<Node*> root_;
};

}  // namespace ingot::storage
