// The ids of dead collections (or keyspaces) in memory, each with the epoch in which it died: what
// compactions ask when they leave dead elements out.
//
// A page for each 65536 ids, six bytes for an id. Thread safe; what it hands out are copies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

namespace ingot::storage {

class DeadIds {
 public:
  explicit DeadIds(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Takes ids (ascending) in as of a new epoch, as many from the front as there is room for; how
  // many those are. An id that is known keeps its epoch.
  size_t add(std::span<const uint64_t> ids);
  void remove(std::span<const uint64_t> ids);  // ascending

  // That of the last add(), 0 before the first: every id of it and of earlier ones is in here.
  uint32_t newest() const;
  size_t size() const;

  struct Run {
    uint64_t first, last;  // every id from the first to the last is dead
  };
  // The first run that ends at `id` or behind it, cut off at the end of a page.
  std::optional<Run> next(uint64_t id) const;
  bool covers(uint64_t first, uint64_t last) const;  // all of them are dead

  // In ascending order, under a lock that add() and remove() wait for.
  void for_each(const std::function<void(uint64_t id, uint32_t epoch)>& visit) const;

 private:
  struct Page {
    std::vector<uint16_t> low;  // ascending
    std::vector<uint32_t> epoch;
  };

  const size_t bytes_max_;
  mutable std::shared_mutex mutex_;
  // All by mutex_:
  std::map<uint64_t, Page> pages_;  // by the ids' other bits
  size_t size_ = 0;
  uint32_t newest_ = 0;
};

}  // namespace ingot::storage
