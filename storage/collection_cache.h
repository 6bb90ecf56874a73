// Images of small collections that are read more often than they change: a walk over one costs a
// step in an array where the engine merges its memtables and blocks for each record.
//
// An image is of one revision, and what a collection held at a revision never changes: so there is
// nothing to take back when it is written to. It is found no more, and leaves when room is needed.
// It is made once the reads of its revision have cost about as much as making it does.
//
// Threads: an image is constant once it is shared; everything of the cache by any thread.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/engine.h"

namespace ingot::storage {

// All records of a collection in one space, in the order of their keys.
class CollectionImage {
 public:
  // Larger ones are left to the engine: they would push out many small ones, and take long to make.
  static constexpr uint64_t kElementsMax = 1024;
  static constexpr size_t kBytesMax = 128 << 10;

  // Requires rising keys. False when it is full.
  [[nodiscard]] bool add(std::string_view key, std::string_view value);
  size_t size() const { return ends_.size() / 2; }
  std::string_view key(size_t index) const { return piece(2 * index); }
  std::string_view value(size_t index) const { return piece(2 * index + 1); }
  size_t find(std::string_view key) const;  // the index of the first that is not before it
  size_t bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }
  void shrink();  // to what it needs

 private:
  std::string_view piece(size_t index) const {
    return {bytes_.data() + ends_[index], ends_[index + 1] - ends_[index]};
  }

  std::string bytes_;
  std::vector<uint32_t> ends_{0};  // in `bytes_`, of what stands before each key and each value
};

std::unique_ptr<Cursor> image_cursor(std::shared_ptr<const CollectionImage> image,
                                     std::string_view lower, std::string_view upper);

class CollectionCache {
 public:
  explicit CollectionCache(uint64_t capacity_bytes) { set_capacity(capacity_bytes); }
  CollectionCache(const CollectionCache&) = delete;
  CollectionCache& operator=(const CollectionCache&) = delete;

  struct Name {
    CollectionId id;
    Space space;
    bool operator==(const Name&) const = default;
  };
  // Of a collection with so many elements. Null when there is none of this revision; with `*make`
  // when the caller had better make one, and put() it. `make` null: who asks cannot.
  std::shared_ptr<const CollectionImage> get(const Name& name, uint32_t revision, uint64_t elements,
                                             bool* make);
  // `image` null: it could not be made. That is tried again, but not as soon.
  void put(const Name& name, uint32_t revision, std::shared_ptr<const CollectionImage> image);

  // Takes effect as images are added. 0: holds nothing.
  void set_capacity(uint64_t bytes);
  uint64_t bytes() const;
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 16;

  struct Entry {
    Name name;
    uint32_t revision;
    unsigned failures = 0;  // to make an image
    uint64_t asked = 0;     // for this revision, in vain
    bool used = false;      // since it was last considered for eviction
    std::shared_ptr<const CollectionImage> image;
  };
  using Queue = std::list<Entry>;
  struct Hash {
    size_t operator()(const Name& name) const {
      return std::hash<uint64_t>{}(name.id * 2 + (name.space == Space::kOrder));
    }
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    // All by mutex:
    boost::unordered_flat_map<Name, Queue::iterator, Hash> entries;
    Queue queue;  // the next to be considered for eviction first
    uint64_t bytes = 0;
  };

  Shard& shard_of(const Name& name) { return shards_[name.id % kShards]; }
  static uint64_t bytes_of(const Entry& entry);
  static void renew(Shard& shard, Entry& entry, uint32_t revision,
                    std::shared_ptr<const CollectionImage> image);
  void make_room(Shard& shard);

  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> shard_bytes_max_{0};
  std::atomic<uint64_t> hits_{0};
};

}  // namespace ingot::storage
