// Many reads of files under way at once on one thread, by io_uring: work that needs bytes which are
// not in memory ends, and runs again from its beginning when they have come.
//
// Threads: everything by the one that calls turn(), but open() and wake().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "storage/no_wait_reads.h"
#include "storage/status.h"

namespace ingot::storage {

class ReadRing {
 public:
  // False: what its reads want has not come, and it is to run again when it has.
  using Work = std::move_only_function<bool()>;

  // For at most `works_max` at a time. Null, and why, where the kernel has no io_uring for us.
  static std::unique_ptr<ReadRing> open(unsigned works_max, Status* why);
  ~ReadRing();  // no work is left

  // Begins it at once, or when what `reads` want has come. Requires under_way() < works_max.
  void run(Work work, NoWaitReads reads = NoWaitReads());
  // Hands what is wanted to the kernel, and runs what has come. May wait until something comes or
  // wake() is called.
  void turn(bool may_wait);
  void wake();  // any thread
  size_t under_way() const { return running_.size(); }

 private:
  struct Ring;
  struct Running;
  explicit ReadRing(std::unique_ptr<Ring> ring);
  void submit(Running& running);
  void attempt(Running& running);
  void came(Running& running, int result);
  void end(Running& running);

  const std::unique_ptr<Ring> ring_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<Running*> ready_;
};

}  // namespace ingot::storage
