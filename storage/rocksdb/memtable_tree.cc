// Searching and dividing the nodes of a memtable's tree.
#include "storage/rocksdb/memtable_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <thread>

namespace ingot::storage {
namespace {

constexpr uint32_t kTrailerBytes = 8;

uint32_t common_bytes(std::string_view a, std::string_view b) {
  const size_t bytes = std::min(a.size(), b.size());
  return static_cast<uint32_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(bytes), b.begin()).first - a.begin());
}

}  // namespace

std::string_view MemtableTree::internal_key_of(const char* entry) {
  uint32_t bytes = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*entry++);
    bytes |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return {entry, bytes};
  }
}

struct MemtableTree::Key {
  explicit Key(std::string_view internal_key)
      : user(internal_key.substr(0, internal_key.size() - kTrailerBytes)) {}
  explicit Key(const char* entry) : Key(internal_key_of(entry)) {}

  // As a number that is ordered as the bytes are; what the key does not have counts as zeros.
  uint64_t head(uint32_t skip) const {
    if (skip >= user.size()) return 0;
    uint64_t bytes = 0;
    std::memcpy(&bytes, user.data() + skip, sizeof(bytes));  // the trailer follows the key
    bytes = __builtin_bswap64(bytes);
    const size_t left = user.size() - skip;
    return left >= 8 ? bytes : bytes & (~uint64_t{0} << (64 - 8 * left));
  }
  uint64_t trailer() const {
    uint64_t number = 0;
    std::memcpy(&number, user.data() + user.size(), sizeof(number));
    return number;
  }
  // Of one user key the newest is first.
  std::strong_ordering operator<=>(const Key& other) const {
    const auto order = user <=> other.user;
    return order != 0 ? order : other.trailer() <=> trailer();
  }

  std::string_view user;
};

// Of a node's keys, as it was published.
class MemtableTree::Order {
 public:
  explicit Order(uint64_t bits) : bits_(bits) {}
  static uint64_t of_first(int count) {
    return (0xEDCBA98765432100 & ~uint64_t{0xf}) | static_cast<uint64_t>(count);
  }
  int count() const { return static_cast<int>(bits_ & 0xf); }
  int slot(int place) const { return static_cast<int>(bits_ >> (4 * (place + 1)) & 0xf); }
  // The next free slot, in `place`.
  uint64_t with_new(int place) const {
    const int shift = 4 * (place + 1);
    const uint64_t below = bits_ & ((uint64_t{1} << shift) - 1);
    const uint64_t above = shift == 60 ? 0 : (bits_ >> shift) << (shift + 4);
    return (above | static_cast<uint64_t>(count()) << shift | below) + 1;
  }

 private:
  uint64_t bits_;
};

namespace {

// All of its lines at once, rather than one after the other.
template <typename Node>
void prefetch_node(const Node* node) {
  for (size_t at = 0; at < sizeof(Node); at += 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(node) + at);
  }
}

// Waits while the node is divided: some hundred nanoseconds, unless that thread is put aside.
template <typename Node>
uint32_t stable_version(const Node& node) {
  for (int tries = 0;; ++tries) {
    const uint32_t version = node.version.load(std::memory_order_acquire);
    if ((version & 1) == 0) return version;
    if (tries > 100) std::this_thread::yield();
  }
}

// Everything that was read of the node before, with acquire, is of this version.
template <typename Node>
bool is_still(const Node& node, uint32_t version) {
  return node.version.load(std::memory_order_relaxed) == version;
}

// Nothing that is stored with release afterwards is seen under the old version.
template <typename Node>
class Dividing {
 public:
  explicit Dividing(Node* node) : node_(*node) {
    node_.version.store(node_.version.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  ~Dividing() {
    node_.version.store(node_.version.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
  }
  Dividing(const Dividing&) = delete;
  Dividing& operator=(const Dividing&) = delete;

 private:
  Node& node_;
};

}  // namespace

MemtableTree::MemtableTree(Allocate allocate)
    : allocate_(std::move(allocate)), first_(new_node(/*is_leaf=*/true, nullptr)), root_(first_) {}

MemtableTree::Node* MemtableTree::new_node(bool is_leaf, const char* low) {
  Node* node = new (allocate_(sizeof(Node))) Node;
  node->is_leaf = is_leaf;
  node->low = low;
  return node;
}

const char* MemtableTree::entry_at(const Node& node, int slot) {
  const void* held = node.slots[static_cast<size_t>(slot)].load(std::memory_order_acquire);
  return node.is_leaf ? static_cast<const char*>(held) : static_cast<const Node*>(held)->low;
}

// How many keys of the node are before `key` (or equal). A node is read while it is divided, too:
// what comes out then means nothing, but everything that is followed is an entry or a node.
int MemtableTree::places_before(const Node& node, uint64_t bits, const Key& key, bool or_equal) {
  const Order order(bits);
  const uint64_t head = key.head(node.skip.load(std::memory_order_acquire));
  auto [before, undecided] = count_heads(node.heads, order.count(), head);
  while (undecided > 0) {
    const int middle = undecided / 2;
    const char* entry = entry_at(node, order.slot(before + middle));
    const auto compared = entry == nullptr ? std::strong_ordering::less : Key(entry) <=> key;
    if (compared < 0 || (or_equal && compared == 0)) {
      before += middle + 1;
      undecided -= middle + 1;
    } else {
      undecided = middle;
    }
  }
  return before;
}

const MemtableTree::Node* MemtableTree::child_for(const Node& parent, const Key& key) {
  const uint64_t bits = parent.order.load(std::memory_order_acquire);
  const int place = std::max(places_before(parent, bits, key, /*or_equal=*/true), 1) - 1;
  const auto slot = static_cast<size_t>(Order(bits).slot(place));
  return static_cast<const Node*>(parent.slots[slot].load(std::memory_order_acquire));
}

// --- fetching ahead

// What places_before() would compare in full.
void MemtableTree::prefetch_equal(const Node& leaf, const Key& key) {
  const uint64_t head = key.head(leaf.skip.load(std::memory_order_acquire));
  const int count = Order(leaf.order.load(std::memory_order_acquire)).count();
  for (size_t slot = 0; slot < static_cast<size_t>(count); ++slot) {
    if (leaf.heads[slot].load(std::memory_order_acquire) != head) continue;
    __builtin_prefetch(leaf.slots[slot].load(std::memory_order_acquire));
  }
}

// No node is ever given back; what is found while nodes are divided may be the neighbour.
void MemtableTree::prefetch(std::span<const std::string_view> internal_keys) const {
  constexpr size_t kAtOnce = 16;  // as many lines as a processor waits for at the same time
  for (; !internal_keys.empty();
       internal_keys = internal_keys.subspan(std::min(kAtOnce, internal_keys.size()))) {
    const auto keys = internal_keys.first(std::min(kAtOnce, internal_keys.size()));
    std::array<const Node*, kAtOnce> nodes;
    nodes.fill(root_.load(std::memory_order_acquire));
    while (!nodes[0]->is_leaf) {
      for (size_t i = 0; i < keys.size(); ++i) {
        nodes[i] = child_for(*nodes[i], Key(keys[i]));
        prefetch_node(nodes[i]);
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) prefetch_equal(*nodes[i], Key(keys[i]));
  }
}

// --- inserting

void MemtableTree::put(Node* node, const void* slot, const Key& key) {
  const uint64_t bits = node->order.load(std::memory_order_relaxed);
  const auto free = static_cast<size_t>(Order(bits).count());
  const int place = places_before(*node, bits, key, /*or_equal=*/false);
  node->heads[free].store(key.head(node->skip.load(std::memory_order_relaxed)),
                          std::memory_order_release);
  node->slots[free].store(slot, std::memory_order_release);
  node->order.store(Order(bits).with_new(place), std::memory_order_release);
}

void MemtableTree::insert(const char* entry) {
  const Key key(entry);
  const auto is_full = [](const Node* node) {
    return Order(node->order.load(std::memory_order_relaxed)).count() == kPlaces;
  };
  Node* node = root_.load(std::memory_order_relaxed);
  if (is_full(node)) {
    Node* above = new_node(/*is_leaf=*/false, nullptr);
    above->heads[0].store(0, std::memory_order_relaxed);
    above->slots[0].store(node, std::memory_order_relaxed);
    above->order.store(Order::of_first(1), std::memory_order_relaxed);
    root_.store(above, std::memory_order_release);
    node = above;
  }
  const auto child_for_key = [&key](const Node& parent) {
    return const_cast<Node*>(child_for(parent, key));
  };
  while (!node->is_leaf) {
    Node* child = child_for_key(*node);
    prefetch_node(child);
    if (is_full(child)) {
      split(node, child, key);
      child = child_for_key(*node);
    }
    node = child;
  }
  put(node, entry, key);
}

void MemtableTree::fill(Node* node, const void* const* slots, const uint64_t* heads, int count,
                        uint32_t skip, uint32_t skip_of_heads) {
  node->order.store(Order::of_first(count), std::memory_order_release);
  node->skip.store(skip, std::memory_order_release);
  for (int i = 0; i < count; ++i) {
    const auto slot = static_cast<size_t>(i);
    node->slots[slot].store(slots[i], std::memory_order_release);
    uint64_t head = heads[i];
    if (skip != skip_of_heads) {
      const char* entry = entry_at(*node, i);
      head = entry == nullptr ? 0 : Key(entry).head(skip);
    }
    node->heads[slot].store(head, std::memory_order_release);
  }
}

// `parent` has a free slot. Where keys come in order, the full node stays as full as it is.
void MemtableTree::split(Node* parent, Node* child, const Key& for_key) {
  const uint64_t bits = child->order.load(std::memory_order_relaxed);
  const Order order(bits);
  const int place = places_before(*child, bits, for_key, /*or_equal=*/false);
  const int left = place == kPlaces ? kPlaces - 1 : place == 0 ? 1 : kPlaces / 2;

  std::array<const void*, kPlaces> slots;
  std::array<uint64_t, kPlaces> heads;
  for (int i = 0; i < kPlaces; ++i) {
    const auto slot = static_cast<size_t>(order.slot(i));
    slots[static_cast<size_t>(i)] = child->slots[slot].load(std::memory_order_relaxed);
    heads[static_cast<size_t>(i)] = child->heads[slot].load(std::memory_order_relaxed);
  }
  Node* right = new_node(child->is_leaf, entry_at(*child, order.slot(left)));
  const Key middle(right->low);
  Node* next = child->next.load(std::memory_order_relaxed);
  // What a node is bounded by on both sides is shared by all that can stand in it.
  const uint32_t skip = child->skip.load(std::memory_order_relaxed);
  const uint32_t right_skip = next == nullptr ? 0 : common_bytes(middle.user, Key(next->low).user);
  const uint32_t left_skip =
      child->low == nullptr ? 0 : common_bytes(Key(child->low).user, middle.user);
  const auto at = static_cast<size_t>(left);
  fill(right, slots.data() + at, heads.data() + at, kPlaces - left, right_skip, skip);
  right->next.store(next, std::memory_order_relaxed);

  const Dividing dividing_parent(parent);
  const Dividing dividing_child(child);
  fill(child, slots.data(), heads.data(), left, left_skip, skip);
  child->next.store(right, std::memory_order_release);
  put(parent, right, middle);
}

// --- reading

template <typename PlacesBefore>
MemtableTree::Spot MemtableTree::descend(const PlacesBefore& places_before) const {
  for (;;) {
    const Node* node = root_.load(std::memory_order_acquire);
    uint32_t version = stable_version(*node);
    bool is_whole = root_.load(std::memory_order_acquire) == node;
    while (is_whole && !node->is_leaf) {
      const uint64_t bits = node->order.load(std::memory_order_acquire);
      const int place = std::max(places_before(*node, bits), 1) - 1;
      const auto slot = static_cast<size_t>(Order(bits).slot(place));
      const auto* child =
          static_cast<const Node*>(node->slots[slot].load(std::memory_order_acquire));
      prefetch_node(child);
      const uint32_t child_version = stable_version(*child);
      is_whole = is_still(*node, version);
      node = child;
      version = child_version;
    }
    if (!is_whole) continue;
    const uint64_t bits = node->order.load(std::memory_order_acquire);
    const int place = places_before(*node, bits);
    if (is_still(*node, version)) return {node, version, bits, place, nullptr};
  }
}

template <typename PlacesBefore>
MemtableTree::Spot MemtableTree::find_last(const PlacesBefore& places_before) const {
  for (;;) {
    Spot spot = descend(places_before);
    // Only the first leaf may have none: the others have the entry that bounds them below.
    if (--spot.place < 0) return spot;
    spot.entry = entry_at(*spot.node, Order(spot.order).slot(spot.place));
    if (is_still(*spot.node, spot.version)) return spot;
  }
}

MemtableTree::Spot MemtableTree::find_before(const Key& key) const {
  return find_last([&key](const Node& node, uint64_t bits) {
    return places_before(node, bits, key, /*or_equal=*/false);
  });
}

MemtableTree::Spot MemtableTree::find_first(const Key& key) const {
  for (;;) {
    Spot spot = descend([&key](const Node& node, uint64_t bits) {
      return places_before(node, bits, key, /*or_equal=*/false);
    });
    const bool is_here = spot.place < Order(spot.order).count();
    if (is_here) spot.entry = entry_at(*spot.node, Order(spot.order).slot(spot.place));
    const Node* next = spot.node->next.load(std::memory_order_acquire);
    if (!is_still(*spot.node, spot.version)) continue;
    return is_here || next == nullptr ? spot : first_of(next);
  }
}

MemtableTree::Spot MemtableTree::first_of(const Node* leaf) const {
  for (;;) {
    Spot spot{.node = leaf, .version = stable_version(*leaf)};
    spot.order = leaf->order.load(std::memory_order_acquire);
    if (Order(spot.order).count() == 0) return spot;  // the tree is empty
    spot.entry = entry_at(*leaf, Order(spot.order).slot(0));
    if (is_still(*leaf, spot.version)) return spot;
  }
}

// Whoever walks on will want them all: what they cost is one miss of the processor's cache instead
// of one each.
void MemtableTree::prefetch_entries(const Spot& at) {
  const Node* next = at.node->next.load(std::memory_order_acquire);
  if (next != nullptr) prefetch_node(next);
  const Order order(at.order);
  for (int place = at.place; place < order.count(); ++place) {
    const char* entry = entry_at(*at.node, order.slot(place));
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + 64);
  }
}

void MemtableTree::Cursor::seek(std::string_view internal_key) {
  spot_ = tree_.find_first(Key(internal_key));
}

void MemtableTree::Cursor::seek_for_prev(std::string_view internal_key) {
  const Key key(internal_key);
  spot_ = tree_.find_last([&key](const Node& node, uint64_t bits) {
    return places_before(node, bits, key, /*or_equal=*/true);
  });
}

void MemtableTree::Cursor::seek_to_first() {
  spot_ = tree_.first_of(tree_.first_);
}

void MemtableTree::Cursor::seek_to_last() {
  spot_ = tree_.find_last([](const Node&, uint64_t bits) { return Order(bits).count(); });
}

void MemtableTree::Cursor::next() {
  for (;;) {
    const Spot before = spot_;
    const Order order(before.order);
    const Node* following = nullptr;
    if (before.place + 1 < order.count()) {
      spot_.entry = entry_at(*before.node, order.slot(++spot_.place));
    } else {
      following = before.node->next.load(std::memory_order_acquire);
      spot_.entry = nullptr;
    }
    if (is_still(*before.node, before.version)) {
      if (following == nullptr) return;
      spot_ = tree_.first_of(following);
      return prefetch_entries(spot_);
    }
    spot_ = tree_.find_first(Key(before.entry));
  }
}

void MemtableTree::Cursor::prev() {
  const Spot before = spot_;
  if (before.place > 0) {
    spot_.entry = entry_at(*before.node, Order(before.order).slot(--spot_.place));
    if (is_still(*before.node, before.version)) return;
  }
  spot_ = tree_.find_before(Key(before.entry));
}

}  // namespace ingot::storage
