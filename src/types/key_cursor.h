// SCAN's cursors: numbers below 2^53 that stand for a position in the order of keys. A cursor
// continues exactly where it stood, as often as it is used, or is unknown; it never starts over.
//
// The table is bounded by bytes. Of each walk the last few cursors are kept; walks that came to
// their end are forgotten first, then those that were not continued for longest. No client's walks
// take more than a share of the table, so its scanning costs others nothing. Any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "storage/engine.h"

namespace ingot::types {

class KeyCursors {
 public:
  static constexpr size_t kBytesMax = 8 << 20;
  static constexpr size_t kShares = 16;     // a client's walks take one of them at most
  static constexpr size_t kKeptOfWalk = 8;  // cursors

  explicit KeyCursors(size_t bytes_max = kBytesMax);

  // A new cursor for `position`, which is any bytes; never 0. It belongs to the walk of the cursor
  // that was `continued` (0, or one that is unknown: to a new walk), which is the client's now.
  uint64_t add(std::string_view position, uint64_t client, uint64_t continued = 0);
  std::optional<std::string> find(uint64_t cursor) const;
  // The walk that this was a cursor of has come to its end. The cursors can still be used.
  void end(uint64_t cursor);

  // At a clean shutdown and at the start: clients go on with the cursors they have. What was saved
  // stays true for ever. A failure costs the cursors, nothing else.
  void save(storage::Engine& engine) const;
  void load(storage::Engine& engine);

 private:
  using Number = uint64_t;  // of a walk; the least is forgotten first
  struct Walk {
    uint64_t client;
    std::deque<uint64_t> cursors;  // those used last are last
  };
  struct Position {
    std::string bytes;
    Number walk;
  };
  struct Client {
    std::set<Number> walks;
    size_t bytes = 0;
  };

  uint64_t take_next();
  void insert(Number walk, uint64_t cursor, std::string_view position);
  void forget_oldest(Walk& walk);
  void forget(Number walk);
  void leave(uint64_t client, Number walk);
  void move(Number walk, Number to, uint64_t client);
  void make_room(uint64_t client);

  const size_t bytes_max_;
  mutable std::mutex mutex_;
  // All by mutex_:
  boost::unordered_flat_map<uint64_t, Position> positions_;
  std::map<Number, Walk> walks_;
  std::map<uint64_t, Client> clients_;  // those with walks; 0: of an earlier run
  size_t bytes_ = 0;
  uint64_t next_;
  Number next_ended_ = 1;
  Number next_walk_ = Number{1} << 63;
};

}  // namespace ingot::types
