// The bounds of leaves (counted_order.h) that were met lately, so that an item's leaf is looked up
// instead of sought. They are a hint: a leaf may be gone, and others may lie between. Of some it is
// known that none does: they are joined to the bound before them. Whoever puts leaves says so.
//
// An order in chunks of neighbours. A search compares eight bytes of each bound, which stand side
// by side: a balanced tree of strings missed the processor's cache at each of its fifteen levels.
// The writer's thread; a dry run has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/codec.h"

namespace ingot::types {

class LeafBounds {
 public:
  struct Known {
    std::string bound;
    bool joined;  // no leaf lies between the known bound before it, or the order's begin, and it
  };
  // The first known bound of the collection that is not before `bound`.
  std::optional<Known> at(storage::CollectionId id, std::string_view bound) const;
  // Beyond the memory for them one chunk after the other is forgotten in turn: there is no telling
  // which will be asked for. A very long bound is not taken.
  void note(storage::CollectionId id, std::string_view bound);
  // The same of a leaf that came off the begin of the leaf `behind`.
  void note_split(storage::CollectionId id, std::string_view bound, std::string_view behind);
  // No leaf lies between these two; `before` is empty where none is before the other.
  void note_neighbours(storage::CollectionId id, std::string_view before, std::string_view bound);
  void forget(storage::CollectionId id, std::string_view bound);
  // There may be a leaf with this bound that was not there before.
  void part(storage::CollectionId id, std::string_view bound);

  size_t size() const { return size_; }

  // They serve what the cache of hot records holds: a sixteenth of what that may have, and at least
  // kBytesMin.
  void follow_cache(uint64_t capacity_bytes);

  static constexpr size_t kBytesMin = 4 << 20;
  static constexpr size_t kBoundBytesMax = 4096;

 private:
  struct Head {
    storage::CollectionId id;
    uint64_t bytes;  // of the bound's begin, ordered as they are; zeros behind its end
    auto operator<=>(const Head&) const = default;
  };
  struct Entry {
    Head head;
    uint32_t tail_end;    // in Chunk::tails
    uint32_t bytes : 31;  // of the whole bound
    uint32_t joined : 1;
  };
  struct Chunk {
    std::vector<Entry> entries;
    std::string tails;  // what is behind the head of each bound
    std::string_view tail(size_t index) const;
    void insert(size_t index, const Head& head, std::string_view bound);
    void erase(size_t index);
    size_t bytes() const { return entries.size() * kEntryBytes + tails.size(); }
  };
  struct Spot {
    size_t chunk;
    size_t index;
  };
  static constexpr size_t kChunkEntries = 128;
  static constexpr size_t kEntryBytes = sizeof(Entry) * 3 / 2;  // with the room that vectors leave

  static Head head_of(storage::CollectionId id, std::string_view bound);
  static bool is_before(const Chunk& chunk, size_t index, const Head& head, std::string_view bound);
  static bool is(const Chunk& chunk, size_t index, const Head& head, std::string_view bound);
  // Of the first bound that is not before this one; the end of the last chunk when there is none.
  Spot find(const Head& head, std::string_view bound) const;
  bool is_end(const Spot& spot) const {
    return chunks_.empty() || spot.index == chunks_[spot.chunk].entries.size();
  }
  // As note() and note_neighbours(), without making room.
  void add(storage::CollectionId id, std::string_view bound);
  void add_neighbours(storage::CollectionId id, std::string_view before, std::string_view bound);
  void set_joined(storage::CollectionId id, std::string_view bound);  // if it is known
  // Whether the entry before this spot is the collection's, and not before `bound`.
  bool follows(const Spot& spot, const Head& head, std::string_view bound) const;
  void part(const Spot& spot);
  void split(size_t chunk);
  void drop_chunk(size_t chunk);
  void make_room();

  std::vector<Chunk> chunks_;  // none is empty
  std::vector<Head> lasts_;    // of the last entry in each
  size_t size_ = 0;
  size_t bytes_ = 0;
  size_t bytes_max_ = kBytesMin;
  size_t turn_ = 0;  // the chunk that is forgotten next
};

}  // namespace ingot::types
