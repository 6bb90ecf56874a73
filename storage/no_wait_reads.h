// Reads of files that do not wait for the disk. While an object of this class is the thread's own,
// a read of Tier::kCacheOnly goes to table files, too: where their bytes are not in memory it notes
// what it wants and ends as a miss; a ReadRing fetches that, and what is read again then finds it.
// Reads of Tier::kDisk wait as ever.
//
// Threads: one at a time; moved from one to another between two runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "storage/engine.h"

namespace ingot::storage {

// A file that does not change any more; closed when its last reader has gone.
class OpenFile {
 public:
  OpenFile(int fd, uint64_t size, bool direct) : fd_(fd), size_(size), direct_(direct) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }
  uint64_t size() const { return size_; }
  bool direct() const { return direct_; }  // O_DIRECT

 private:
  const int fd_;
  const uint64_t size_;
  const bool direct_;
};

class NoWaitReads {
 public:
  NoWaitReads() = default;
  // At most so many reads are answered from the page cache: each costs some microseconds.
  explicit NoWaitReads(unsigned cached_max) : cached_left_(cached_max) {}

  // The thread's own; null: its reads wait.
  static NoWaitReads* current();
  // Makes one the thread's own for as long as this lives. They do not nest.
  class Scope {
   public:
    explicit Scope(NoWaitReads* reads);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  // The thread has none for as long as this lives.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    NoWaitReads* const before_;
  };

  // For as long as this lives its reads find what the engine's own caches have, and nothing else.
  class Refusal;

  // For one read by an engine: whatever the thread has, those of Tier::kDisk wait, and those of
  // Tier::kCacheOnly do not. (RocksDB goes to the file for a part of an index in either.)
  class ForTier;

  struct Answer {
    enum class Kind : uint8_t { kCame, kWanted, kFailed } kind;
    size_t bytes = 0;  // that were read; less than asked for at the end of the file
    int error = 0;     // errno
  };
  // For a file system. After the first kWanted nothing else is asked for before that has come:
  // whether it is needed shows then.
  Answer read(const std::shared_ptr<const OpenFile>& file, uint64_t offset, size_t bytes,
              char* into);
  // What could not be read has not come yet.
  bool wants() const { return wants_; }

 private:
  friend class ReadRing;
  // A stretch of a file that was asked for.
  struct Landing {
    struct Free {
      void operator()(char* memory) const { std::free(memory); }
    };
    std::shared_ptr<const OpenFile> file;
    uint64_t offset;
    size_t bytes;
    std::unique_ptr<char[], Free> buffer;  // null until the ring asks the kernel
    size_t got = 0;
    int error = 0;  // errno
  };

  std::vector<Landing> landings_;  // the last one has not come while `wants_`
  bool wants_ = false;
  unsigned cached_left_ = std::numeric_limits<unsigned>::max();
};

class NoWaitReads::Refusal {
 public:
  Refusal();
  ~Refusal();
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

 private:
  NoWaitReads none_{0};
  NoWaitReads* const before_;
};

class NoWaitReads::ForTier {
 public:
  explicit ForTier(Tier tier) {
    if (tier == Tier::kDisk) {
      pause_.emplace();
    } else if (current() == nullptr) {
      refusal_.emplace();
    }
  }

 private:
  std::optional<Pause> pause_;
  std::optional<Refusal> refusal_;
};

}  // namespace ingot::storage
