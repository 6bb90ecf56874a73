// Where the entries of a cache are, by their hashes. Open addressing: a look-up misses the
// processor's cache once, in a place that is known before it, so that it can be fetched ahead.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ingot::storage {

template <typename Entry>
class EntryPlaces {
 public:
  size_t size() const { return size_; }

  // The entry with this hash of which `is` is true; null: there is none.
  template <typename Is>
  Entry* find(uint64_t hash, const Is& is) const {
    if (size_ == 0) return nullptr;
    for (size_t at = home(hash); places_[at].entry != nullptr; at = next(at)) {
      if (places_[at].hash == hash && is(*places_[at].entry)) return places_[at].entry;
    }
    return nullptr;
  }

  void insert(uint64_t hash, Entry* entry) {
    if (3 * (size_ + 1) > 2 * capacity_) grow();
    put({.hash = hash, .entry = entry});
    ++size_;
  }

  // Requires the entry to be there.
  void erase(uint64_t hash, const Entry* entry) {
    size_t hole = home(hash);
    while (places_[hole].entry != entry) hole = next(hole);
    // Those behind it that stand there for want of a place move up.
    for (size_t at = next(hole); places_[at].entry != nullptr; at = next(at)) {
      const size_t from_home = (at - home(places_[at].hash)) & (capacity_ - 1);
      const size_t from_hole = (at - hole) & (capacity_ - 1);
      if (from_home < from_hole) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = {};
    --size_;
  }

  void prefetch(uint64_t hash) const {
    if (capacity_ != 0) __builtin_prefetch(&places_[home(hash)]);
  }

 private:
  struct Place {
    uint64_t hash = 0;
    Entry* entry = nullptr;  // null: it is free
  };

  // The lowest bits may be the same for all of them.
  size_t home(uint64_t hash) const { return (hash >> 16) & (capacity_ - 1); }
  size_t next(size_t at) const { return (at + 1) & (capacity_ - 1); }

  void put(const Place& place) {
    size_t at = home(place.hash);
    while (places_[at].entry != nullptr) at = next(at);
    places_[at] = place;
  }

  void grow() {
    constexpr size_t kFirst = 16;
    const size_t before = capacity_;
    const std::unique_ptr<Place[]> old = std::move(places_);
    capacity_ = before == 0 ? kFirst : 2 * before;
    places_ = std::make_unique<Place[]>(capacity_);
    for (size_t at = 0; at < before; ++at) {
      if (old[at].entry != nullptr) put(old[at]);
    }
  }

  std::unique_ptr<Place[]> places_;
  size_t capacity_ = 0;  // a power of two
  size_t size_ = 0;
};

}  // namespace ingot::storage
