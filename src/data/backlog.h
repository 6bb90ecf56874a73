// The last bytes of a stream, on disk: a directory of segment files, of which the oldest go when
// all together take more than they may and nobody reads them any more.
//
// A segment is named after the place in the stream where it begins and the id under which its bytes
// were told (20 digits, "-", the id, ".backlog"), and holds frames: u32le length | u64le XXH3 of
// the bytes, seeded with their place | the bytes. Nothing is synced: after a power loss a frame may
// be wrong, which is found when it is read; or whole files may be back that had been removed, or
// are longer again, with bytes of a past that was lost: so what was told under another id than the
// stream knows for a place is never read there.
//
// What is large comes into a file of its own before its place is known (a Part), which is then a
// segment by its name alone (".part" behind it): its frames are seeded with their place in the
// file.
//
// Whatever fails loses the backlog, and no more: what lies before damage, or, when it cannot be
// written, all of it; it goes on where the stream stands.
//
// Threads: append(), cut() and set_limit() by one thread; the rest by any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/status.h"

namespace ingot::data {

struct BacklogSegment;

class Backlog {
 public:
  // A stretch of the stream that was told under one id.
  struct Told {
    std::string id;
    uint64_t end;
  };
  // What a directory holds of a stream of these stretches, the latest first; what is there of
  // behind the end of that one is cut off, and what does not lead there goes. The directory is made
  // when the first bytes come.
  Backlog(std::string directory, const std::vector<Told>& told, uint64_t limit);
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  // Bytes on their way into the backlog, or not: the file goes with it unless append() takes it.
  // One thread at a time; must not outlive its Backlog.
  class Part {
   public:
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    storage::Status append(std::string_view bytes);
    uint64_t bytes() const { return bytes_; }

   private:
    friend class Backlog;
    Part(Backlog& backlog, std::shared_ptr<BacklogSegment> file)
        : backlog_(backlog), file_(std::move(file)) {}
    Backlog& backlog_;
    std::shared_ptr<BacklogSegment> file_;
    uint64_t bytes_ = 0;
  };
  std::unique_ptr<Part> begin_part(storage::Status* error);  // null, with the error

  // Behind all others. Hands them to the operating system; readers see them after publish().
  storage::Status append(std::string_view bytes, const std::string& id);
  storage::Status append(Part& part, const std::string& id);  // in a moment, however large
  void publish();
  void cut();                        // takes back what was appended since publish()
  void begin_anew(uint64_t offset);  // forgets everything, and removes its files; nobody reads on

  // Frees what removed files took, which takes its time when they are large. Now and then, on a
  // thread that may wait.
  void sweep();
  void set_limit(uint64_t bytes);
  uint64_t begin() const;       // the place of the first byte that can be read
  uint64_t end() const;         // behind the last one that is published
  uint64_t file_bytes() const;  // that its files take

  // Reads on from one place. One thread at a time; must not outlive its Backlog.
  class Reader {
   public:
    ~Reader();
    enum class Got : uint8_t {
      kBytes,
      kNothing,  // there is no more at present
      kGone,     // lost; it never reads again
    };
    // Appends at least one byte, and some 128 KB at most. Waits for the disk.
    Got read(std::string* out);
    uint64_t offset() const { return offset_; }

   private:
    friend class Backlog;
    Reader(Backlog& backlog, uint64_t offset, uint64_t generation,
           std::multiset<uint64_t>::iterator held)
        : backlog_(backlog), offset_(offset), generation_(generation), held_(held) {}
    Backlog& backlog_;
    uint64_t offset_;
    const uint64_t generation_;
    std::shared_ptr<BacklogSegment> segment_;
    int fd_ = -1;            // of it
    uint64_t place_ = 0;     // of the frame that is next in the segment, in the stream
    uint64_t position_ = 0;  // of it in the file
    std::multiset<uint64_t>::iterator held_;
  };
  // Null when that place is not in here. What it has yet to read stays.
  std::unique_ptr<Reader> read_from(uint64_t offset);

 private:
  using SegmentPtr = std::shared_ptr<BacklogSegment>;
  void find_segments(const std::vector<Told>& told);
  storage::Status begin_segment(const std::string& id);
  uint64_t readable_from() const { return std::max(begin_, damaged_to_); }  // by mutex_
  void push(SegmentPtr segment);
  std::string unplaced_path();
  void remove(const BacklogSegment& segment);  // by mutex_
  void drop_old();                             // by mutex_
  bool is_held(uint64_t end) const;            // by mutex_: what lies before this place

  const std::string directory_;
  std::atomic<uint64_t> unplaced_{0};  // since the start, for their names

  // The appending thread's:
  uint64_t written_ = 0;          // behind what was appended
  uint64_t segment_bytes_ = 0;    // of the last segment's file
  uint64_t published_bytes_ = 0;  // of it when publish() was last called

  mutable std::mutex mutex_;
  std::deque<SegmentPtr> segments_;   // by mutex_; the last one is written to
  uint64_t limit_;                    // by mutex_
  uint64_t begin_ = 0;                // by mutex_
  uint64_t end_ = 0;                  // by mutex_
  uint64_t damaged_to_ = 0;           // by mutex_: nothing before this place can be read
  uint64_t generation_ = 0;           // by mutex_: so often it has begun anew
  std::multiset<uint64_t> held_;      // by mutex_: the places of readers
  std::vector<std::string> removed_;  // by mutex_: files that are yet to be unlinked
};

}  // namespace ingot::data
