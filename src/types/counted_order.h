// Ranks in a long ordered sequence: how many elements stand before one, and which stands at a rank,
// in tens of microseconds for a million of them. Two levels of buckets count the elements, which
// stand in a space of their own in the order of their *items* (any bytes; of a sorted set score
// and member, of a list the label):
//
//   order space: collection id (u64be) | 1 | turned item  ->  u64le elements from this item to the
//   next bucket's
//                collection id (u64be) | 2 | turned item  ->  the same, over many buckets of level
//                1
//
// The first bucket of each level begins with the empty item. A bucket that grows too large is
// split in the middle; one that is nearly empty is joined with the next where both fit.
//
// A *turned* item sorts the other way round: each byte 0 of it is followed by 1, two bytes 0 stand
// behind it, then all bits are inverted. So the bucket that an item falls into is found by seeking
// forward: backward, RocksDB steps over every version that a memtable holds of a bucket, and a
// busy bucket has many.
//
// Failures latch in the reader. One thread at a time. It keeps a cursor, so it is for one command:
// it does not see what is committed later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/codec.h"
#include "storage/overlay.h"
#include "storage/reader.h"

namespace ingot::types {

// Where the elements stand: every key of `space` that begins with `prefix`, the item behind it.
struct ElementRange {
  storage::Space space;
  std::string prefix;
  std::string low = {};  // no element's item is before this: walks begin behind what was removed
};

class CountedOrder {
 public:
  CountedOrder(storage::Reader& data, storage::CollectionId id, ElementRange elements);

  // How many elements have a smaller item.
  uint64_t rank(std::string_view item);
  // A cursor over the elements, placed on the one with so many before it; not valid when there is
  // none. Its keys begin with the prefix. Report it to the reader's check() after the walk.
  std::unique_ptr<storage::Cursor> at(uint64_t rank);

  // Of ElementRange, which has changed.
  void set_low(std::string_view low) { elements_.low = low; }

 private:
  struct Bucket {
    std::string item;  // where it begins
    uint64_t count = 0;
  };
  friend class CountedOrderWriter;

  std::string level_begin(char level) const;
  std::string bucket_key(char level, std::string_view item) const;
  storage::Cursor& buckets();
  bool on_level(char level) const;
  std::unique_ptr<storage::Cursor> elements();
  Bucket read();
  // The bucket that an item falls into; nothing when there is no bucket.
  std::optional<Bucket> bucket_of(char level, std::string_view item);
  std::optional<Bucket> bucket_behind(char level, std::string_view item);
  // The buckets that begin in [begin, end), the last one first; null `end`: to the last of all.
  std::vector<Bucket> buckets_down(char level, std::string_view begin, const std::string* end);

  storage::Reader& data_;
  const storage::CollectionId id_;
  ElementRange elements_;
  std::unique_ptr<storage::Cursor> buckets_;  // over both levels
};

// Keeps the counts in step. Call it after the element was put or removed in the overlay.
class CountedOrderWriter : public CountedOrder {
 public:
  CountedOrderWriter(storage::Overlay& overlay, storage::CollectionId id, ElementRange elements)
      : CountedOrder(overlay, id, std::move(elements)), overlay_(overlay) {}

  void added(std::string_view item);
  void removed(std::string_view item);
  // Counts the elements that are there, of which nothing is counted yet.
  void build();

 private:
  void put(char level, const Bucket& bucket);
  void erase(char level, std::string_view item);
  void split_leaf(const Bucket& leaf);
  void split_upper(const Bucket& upper);
  void shrink(Bucket leaf, Bucket upper);

  storage::Overlay& overlay_;
};

}  // namespace ingot::types
