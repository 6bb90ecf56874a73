// Overwriting without waiting: a SET of a key that is not in memory is committed without a look at
// what the key held. What that leaves open (was there a key? did it expire?) is settled behind the
// writer: the pool reads the old records, at a view from before the overwrite, and the writer
// brings the counts and the expiry index up to date.
//
// Reads that fall too far behind are given up: then it is lost how many keys there are, until the
// keyspace has been counted anew, by a walk at a view. That is tried by itself, again and again,
// more and more seldom, and succeeds as soon as the reads keep up for as long as the walk takes. In
// the meantime overwriting costs no read at all. The same after a crash, because the old records
// are gone: that a keyspace is not settled stands in its counts record.
//
// Threads: the writer's, except stop() and pending() by any, and where it says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/data/reader_pool.h"
#include "src/data/view.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

// Overwritten keys of one group, with what they held.
struct OverwrittenBatch {
  std::shared_ptr<const data::View> view;  // from before
  std::vector<types::Unread> keys;
  std::vector<std::optional<types::OldTimes>> old;  // of each key; nothing: there was none
  std::atomic<bool> failed{false};                  // some could not be read
  uint64_t generation = 0;
  int64_t begun_ms = 0;  // Unix
  size_t bytes = 0;
  size_t next = 0;              // by Settling::mutex_: the first that is not being read
  std::atomic<size_t> left{0};  // that have not been read
};

// The keys of one keyspace, counted at a view.
struct Recount {
  std::shared_ptr<const data::View> view;
  storage::KeyspaceId keyspace = 0;
  storage::KeyCounts noted;  // when it began
  storage::KeyCounts found;
  bool failed = false;
  uint64_t generation = 0;
  std::string next;  // where the walk goes on
};

class Settling {
 public:
  // Called in the pool with what is to come back to the writer: settled() or recounted().
  using BatchRead = std::function<void(std::shared_ptr<OverwrittenBatch>)>;
  using Counted = std::function<void(std::shared_ptr<Recount>)>;
  Settling(Services& services, BatchRead batch_read, Counted counted);

  // What overwriting may leave unread now.
  types::KeyWriter::Overwrites allowed() const;
  // Whether it is to be read what the keys of a group held: then with a view from before its
  // commit.
  bool wants(const std::vector<types::Unread>& keys) const;
  // Of a committed group. `view` null: not wanted.
  void add(std::shared_ptr<const data::View> view, std::vector<types::Unread> keys);
  // A batch that came back. True: the counts are to be told.
  bool take(const OverwrittenBatch& batch);
  bool is_settled(storage::KeyspaceId keyspace) const;
  // A commit that told the counts of these has failed.
  void lose(const std::vector<storage::KeyspaceId>& keyspaces);

  // When the next recount is to begin; INT64_MAX: none.
  int64_t next_recount_ms() const;
  // Begins one, if it is time. Between groups: `state` is the committed one.
  void recount(const types::KeyspaceState& state);
  // One that came back. True: its counts are right.
  bool take(const Recount& recount);

  // Ends the walks that are under way.
  void stop() { stopping_ = true; }
  uint64_t pending() const { return pending_; }  // keys that are still to be read

 private:
  struct Open {
    uint64_t pending = 0;  // batches
    bool lost = false;
  };

  bool is_counted(storage::KeyspaceId keyspace) const;
  void lose_all();
  bool keeps_up(const OverwrittenBatch& batch) const;
  void note_lost();
  // By any thread:
  void read_on();
  data::ReaderPool::Lookup lookup(std::shared_ptr<OverwrittenBatch> batch, size_t index);
  storage::Lookup read(OverwrittenBatch& batch, size_t index, storage::Tier tier);
  void end_read(const std::shared_ptr<OverwrittenBatch>& batch);
  void walk_on(std::shared_ptr<Recount> recount);
  bool walk(Recount& recount);  // false: it goes on

  Services& services_;
  const BatchRead batch_read_;
  const Counted counted_;
  std::map<storage::KeyspaceId, Open> open_;       // that are not settled
  std::optional<storage::KeyspaceId> recounting_;  // overwrites of this one are settled
  bool walking_ = false;                           // a recount has not come back, void or not
  bool any_lost_ = false;
  int64_t recount_ms_ = 0;
  int64_t recount_rest_ms_;

  std::atomic<uint64_t> generation_{0};  // batches and recounts of earlier ones are void
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> pending_{0};
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<OverwrittenBatch>> batches_;  // by mutex_: not yet read to the end
  size_t under_way_ = 0;                                   // by mutex_
  size_t bytes_ = 0;                                       // by mutex_: of batches not read
  // By mutex_: how fast reads are, since there was something to read, or for a second.
  std::chrono::steady_clock::time_point measured_since_;
  uint64_t measured_reads_ = 0;
};

}  // namespace ingot::exec
