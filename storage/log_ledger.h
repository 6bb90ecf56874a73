// What is known of an engine's write-ahead logs: how far each was handed to the operating system
// and how far it is on stable storage, and whether the disk has room for what is written next. The
// file layer of an engine reports to it; the engine syncs through it.
//
// How far the logs are synced stands in the file SYNCED as well, so that a start after a power loss
// can tell what may be damaged there from what must not be (log_end.h). It is written after each
// sync and made durable once a second, and before a sync that reached a further log has succeeded:
// what it says is true, and at most a second old (older only while the disk has no room for it).
//
// An engine begins a log in the middle of a write, which must not wait until the one before it is
// synced. So SYNCED also says where that one ended: should a power loss take its end and leave the
// new one, the start sees the hole. A thread syncs what lies behind the newest log at once, and no
// log begins before that is done for all but the one before it.
//
// Any thread. sync() waits for the disk; begin(), before_append() and end() do when it is slower
// than the logs fill.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/status.h"

namespace ingot::storage {

// How far the logs of a directory are on stable storage: all of those with a smaller number, and
// so many bytes of this one.
struct SyncedMark {
  uint64_t log = 0;
  uint64_t bytes = 0;
  auto operator<=>(const SyncedMark&) const = default;
};
// False when there is none, or it cannot be read.
bool read_synced_mark(const std::string& directory, SyncedMark* mark);
// Makes this the mark, durably: before what is behind it in its log is cut off. Takes no space.
Status lower_synced_mark(const std::string& directory, const SyncedMark& mark);

// The newest log that was begun before the one in front of it was synced, and where that ended.
struct LogLink {
  uint64_t log = 0;
  uint64_t before = 0;
  uint64_t before_bytes = 0;
};
// Log 0: the power failed while it was written. Nothing: whoever wrote the marks began no log
// before those in front of it were synced (as earlier versions), or nobody knows.
std::optional<LogLink> read_log_link(const std::string& directory);

class LogLedger {
 public:
  // What a file layer does with one log; called while the log is not ended.
  struct Disk {
    std::function<Status()> sync;
    // Room behind `offset`, and for what else the engine needs to go on: kNoSpace, or another
    // failure where the file system cannot tell.
    std::function<Status(uint64_t offset, uint64_t bytes)> allocate;
    // Ends the file at `size`, which is where what is written ends, and frees the room behind it.
    std::function<Status(uint64_t size)> cut;
  };
  class Log {
   private:
    friend class LogLedger;
    Log(uint64_t of, Disk on) : number(of), disk(std::move(on)) {}
    const uint64_t number;
    const Disk disk;
    std::atomic<uint64_t> written{0};
    std::atomic<bool> torn{false};
    std::atomic<bool> ragged{false};  // torn, and what is torn could not be cut off yet
    std::atomic<bool> named{false};   // its name is on stable storage
    std::atomic<bool> begun{false};   // may be appended to
    // The next one was begun before this one was synced.
    std::atomic<bool> followed{false};
    bool ended = false;      // guarded by sync_mutex_
    uint64_t synced = 0;     // guarded by sync_mutex_
    Status lost;             // guarded by sync_mutex_: of the sync that failed
    uint64_t allocated = 0;  // guarded by mutex_
  };

  explicit LogLedger(std::string directory);
  ~LogLedger();
  LogLedger(const LogLedger&) = delete;
  LogLedger& operator=(const LogLedger&) = delete;

  // Once the engine has opened what there was: until then the mark is another run's. Fails when
  // there is one that cannot be changed.
  Status begin_marking();

  // For the file layer.
  const std::string& directory() const { return directory_; }
  bool is_in_directory(const std::string& path) const;
  // A log begins empty, behind all those before it, whose names are durable from then on: if one
  // were lost with its name, and not this one, nobody would see the hole. It takes over the room
  // that the writes under way were promised in the one before it.
  std::shared_ptr<Log> begin(uint64_t number, Disk disk);
  // Before bytes go into a log. The first time it sees to it that a hole in front of them would be
  // seen; kNoSpace when the disk has no room for what that takes. A failure tears the log: what was
  // refused must not come into it when it is closed.
  Status before_append(Log& log);
  void appended(Log& log, uint64_t bytes) {
    log.written += bytes;
    bytes_ += bytes;
  }
  // The log ends where its last whole append does: it takes nothing more. Should torn bytes stay
  // behind that, no later log gets its first byte before they are cut off.
  void tear(Log& log);
  static uint64_t written(const Log& log) { return log.written; }
  static bool torn(const Log& log) { return log.torn; }
  Status sync(Log& log);  // and those before it
  // Nothing in it is needed any more. Waits for a sync of it.
  void end(Log& log);

  // For the engine.
  // Every log. One that failed is never tried again, and fails for good: what the system could not
  // write it may have dropped, and the next sync would know nothing of that.
  Status sync();
  // Before a write of so many bytes: kNoSpace when the disk has no room for them in the newest log,
  // or for what before_append() would write, or another failure of that. Else the room is promised
  // to this write, until release_room() with the same number.
  Status make_room(uint64_t bytes);
  void release_room(uint64_t bytes);
  Status probe_room();  // for a small write, which does not come
  bool newest_is_torn() const;
  uint64_t newest_bytes() const;  // written to the newest log
  // Written to all that are needed; no lock, as the others hold one while the disk works.
  uint64_t bytes() const { return bytes_; }
  // Should a log begin now, before_append() would wait for a sync.
  bool lags() const;
  // How long those who begin logs, and write behind that, have waited for the disk.
  uint64_t waited_micros() const { return waited_micros_; }

 private:
  std::vector<std::shared_ptr<Log>> logs() const;
  void take_room(Log& before, Log& log);  // under mutex_
  Status make_appendable(Log& log);
  bool link(const std::vector<std::shared_ptr<Log>>& before, Log& log);
  Status name(const std::vector<std::shared_ptr<Log>>& logs);
  Status sync_locked(Log& log);  // under sync_mutex_
  Status mark();                 // under sync_mutex_
  Status mark_synced();          // under sync_mutex_
  void call_settler();
  void settle();

  const std::string directory_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> waited_micros_{0};
  mutable std::mutex mutex_;                // taken last
  std::vector<std::shared_ptr<Log>> logs_;  // guarded by mutex_; in the order of their numbers
  uint64_t promised_ = 0;                   // guarded by mutex_: to the writes under way
  bool unsettled_ = false;                  // guarded by mutex_: the settler has something to do
  bool stopping_ = false;                   // guarded by mutex_
  std::condition_variable call_;
  std::thread settler_;  // guarded by mutex_ until the end; begun with the second log

  // All logs before this one are on stable storage, and the durable mark says so. 0: nobody knows.
  std::atomic<uint64_t> settled_{0};
  // Set by begin_marking().
  std::atomic<int> mark_fd_{-1};
  std::atomic<bool> links_{false};  // SYNCED has a place for links

  std::mutex sync_mutex_;  // one sync at a time
  // Guarded by sync_mutex_:
  SyncedMark marked_;
  uint64_t marks_ = 0;      // written so far
  bool mark_lost_ = false;  // the system may have dropped the last one
  std::chrono::steady_clock::time_point mark_durable_at_;
};

}  // namespace ingot::storage
