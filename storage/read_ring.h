// Many reads of files under way at once on one thread, by io_uring: work that needs bytes which are
// not in memory asks for them and ends; when they have come it runs again, from its beginning, and
// finds them.
//
// Threads: everything by the one that calls turn(), but open() and wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "storage/status.h"

namespace ingot::storage {

// A file descriptor that is closed when its last reader has gone.
class OpenFile {
 public:
  OpenFile(int fd, bool direct) : fd_(fd), direct_(direct) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }
  bool direct() const { return direct_; }  // O_DIRECT

 private:
  const int fd_;
  const bool direct_;
};

class ReadRing {
 public:
  // False: a read that it wanted is under way, and it is to run again when that has come.
  using Work = std::move_only_function<bool()>;

  // For at most `works_max` at a time. Null, and why, where the kernel has no io_uring for us.
  static std::unique_ptr<ReadRing> open(unsigned works_max, Status* why);
  ~ReadRing();  // no work is left

  // Begins it at once. Requires under_way() < works_max.
  void run(Work work);
  // Hands what is wanted to the kernel, and runs what has come. May wait until something comes or
  // wake() is called.
  void turn(bool may_wait);
  void wake();  // any thread
  size_t under_way() const { return running_.size(); }

  // Of the work that runs on this thread just now; null: reads wait for the disk.
  static ReadRing* current();

  struct Answer {
    enum class Kind : uint8_t { kCame, kWanted, kFailed } kind;
    size_t bytes = 0;  // that were read; less than asked for at the end of the file
    int error = 0;     // errno
  };
  // For a file system, within work. After the first kWanted nothing else is asked for in this run:
  // whether it is needed shows when the first has come.
  Answer read(const std::shared_ptr<const OpenFile>& file, uint64_t offset, size_t bytes,
              char* into);
  // The running work wants bytes that have not come.
  bool wants() const;

 private:
  struct Ring;
  struct Landing;
  struct Running;
  explicit ReadRing(std::unique_ptr<Ring> ring);
  void submit(Running& running);
  void attempt(Running& running);
  void came(Running& running, int result);
  void end(Running& running);

  const std::unique_ptr<Ring> ring_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<Running*> ready_;
  Running* now_ = nullptr;  // whose work runs
};

}  // namespace ingot::storage
