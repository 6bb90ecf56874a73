// SCAN's cursors: numbers below 2^53 that stand for a position in the order of keys. A cursor
// continues exactly where it stood, as often as it is used, or is unknown; it never starts over.
//
// The table is bounded by bytes; the oldest cursors are forgotten first. Any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "storage/engine.h"

namespace ingot::types {

class KeyCursors {
 public:
  static constexpr size_t kBytesMax = 8 << 20;

  explicit KeyCursors(size_t bytes_max = kBytesMax);

  // A new cursor for `position`, which is any bytes; never 0.
  uint64_t add(std::string_view position);
  std::optional<std::string> find(uint64_t cursor) const;

  // At a clean shutdown and at the start: clients go on with the cursors they have. What was saved
  // stays true for ever. A failure costs the cursors, nothing else.
  void save(storage::Engine& engine) const;
  void load(storage::Engine& engine);

 private:
  uint64_t take_next();
  void insert(uint64_t cursor, std::string_view position);

  const size_t bytes_max_;
  mutable std::mutex mutex_;
  // All by mutex_:
  boost::unordered_flat_map<uint64_t, std::string> positions_;
  std::deque<uint64_t> oldest_first_;
  size_t bytes_ = 0;
  uint64_t next_;
};

}  // namespace ingot::types
