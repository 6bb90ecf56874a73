// Gives back the space of what was dropped: collections and whole keyspaces. An id is handed to the
// engine as dead only when its drop is synced and no view is older than the drop, because the
// engine looks at neither. The engine leaves dead ids out of what it writes, and tells when one is
// gone; that may be days later. Only then its garbage record goes.
//
// So the garbage space is the queue: its records name everything that is dead, in order. The
// collector remembers recent drops by itself, and reads the records, piece by piece, when there is
// more than it may remember: after a start, a FLUSHDB, a flood of drops, or more dead ids than the
// engine has room for. So its memory does not grow with the garbage, and a crash at any time
// forgets nothing.
//
// Keys that are removed one by one leave nothing to collect, and the engine gives their space back
// when much else is written. While growth is refused nothing is: make_room() asks for it.
//
// One background thread, asleep while there is no garbage. Threads: everything by any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/data/free_disk.h"
#include "src/data/store.h"
#include "storage/codec.h"
#include "storage/engine.h"

namespace ingot::data {

class Collector {
 public:
  static constexpr size_t kRememberedMax = 1 << 18;
  // A round begins at once when this many ids wait, else a little later.
  static constexpr size_t kRoundIds = 1000;

  // At most `remembered_max` drops are remembered one by one; more of them are read back from the
  // garbage space.
  explicit Collector(Store& store, size_t remembered_max = kRememberedMax);
  ~Collector();  // stop()
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Begins to work, with what an earlier run left over.
  void start();
  // Ends after the step at hand; what is left stays recorded for the next start.
  void stop();

  // Of a batch that is committed and holds the garbage records of these ids. To hear of an id
  // again does no harm.
  void dropped(std::span<const storage::CollectionId> collections,
               std::span<const storage::KeyspaceId> keyspaces);

  // An id for a collection that is built before any key names it. Its garbage record may be written
  // with its first bytes: it is left alone until release().
  // 0 and `*failure` as FreshIds::next().
  storage::CollectionId reserve(storage::Status* failure);
  // Of a reserved id whose garbage record a commit has removed, or that nobody will ever link.
  void release(storage::CollectionId id);

  // Space is short: what was removed one by one is worth a piece of the engine's work now. To be
  // asked again and again while it is.
  void make_room();
  // Meanwhile nothing large is filled beside the writer, which would take what is left for this
  // work; nor while less than `least_free` bytes are free: that may be so long before it is told.
  void set_space(bool is_short, uint64_t least_free) {
    space_short_ = is_short;
    least_free_ = least_free;
  }
  // `dir`: on whose disk the data are.
  bool is_space_short(const std::string& dir) const {
    return space_short_ || free_disk_bytes(dir) < least_free_;
  }

  // Ids known to wait or to be dead: what a sweep of the garbage space has yet to find is not among
  // them.
  uint64_t pending() const;
  uint64_t reclaimed() const { return reclaimed_.load(std::memory_order_relaxed); }

 private:
  using Collections = std::vector<storage::CollectionId>;
  struct Piece {
    std::vector<uint64_t> ids;
    std::string next;  // where the next piece begins; empty: this is the last
  };

  void run();
  struct Round {
    Collections collections;
    bool sweep = false;
    bool make_room = false;
  };
  bool gather(Round* round);  // false when stopping
  storage::Status sweep();
  storage::Status read_piece(storage::GarbageKind kind, std::string from, Piece* piece);
  storage::Status settle();
  storage::Status bury(storage::KeyspaceId keyspace);
  storage::Status note_collections(storage::KeyspaceId keyspace);
  bool add_dead(storage::GarbageKind kind, std::span<const uint64_t> ids);
  void add_dead(Collections ids);
  storage::Status reclaim();
  storage::Status remove_records(storage::GarbageKind kind, std::span<const uint64_t> ids);
  bool stopping() const;
  bool pause(int64_t ms);  // false when stopping

  Store& store_;
  storage::Engine& engine_;
  const size_t remembered_max_;
  std::atomic<bool> space_short_{false};
  std::atomic<uint64_t> least_free_{0};
  std::atomic<uint64_t> reclaimed_{0};
  std::atomic<uint64_t> in_hand_{0};  // ids that the round at hand is about
  std::atomic<uint64_t> dead_{0};     // ids that the engine knows as dead
  // The thread's:
  size_t removed_records_ = 0;  // tombstones in the garbage space, about
  int64_t worked_ms_ = 0;       // of the engine's reclaiming, in this round
  int64_t look_ms_ = 0;         // until the engine is asked again, though nothing was dropped
  bool again_ = false;          // it has more to do, whatever is dropped
  int behind_ = 0;              // rounds in a row after which it had
  // More is dead than the engine has room for, which was so many ids; 0: there is room.
  uint64_t full_at_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // All by mutex_:
  Collections waiting_;
  bool sweep_ = false;  // the garbage space holds what is not in waiting_
  bool make_room_ = false;
  std::set<storage::CollectionId> reserved_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ingot::data
