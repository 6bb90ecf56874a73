// Keys that one job's unit has for itself while the pool works for it: because they kept changing,
// or because the pool's result depends on more than can be compared afterwards. Units of others
// that name one of them wait until that unit is over; nobody else does. The writer thread's own.
//
// A unit takes all its keys at once, and runs only when no other has one of them: none waits in a
// circle.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/exec/write_job.h"

namespace ingot::exec {

class HeldKeys {
 public:
  bool empty() const { return holders_.empty(); }

  // The job's next unit gets its keys, and those like the patterns, unless it has them already.
  void hold(const WriteJob& job, std::vector<std::string> patterns);
  // The job's unit is over. Answers the jobs that may try again, in the order in which they came.
  std::vector<std::unique_ptr<WriteJob>> release(const WriteJob& job);
  // Whether the job's next unit names a key that another has.
  bool is_held_from(const WriteJob& job) const;
  // All that wait, when nothing will run any more.
  std::vector<std::unique_ptr<WriteJob>> give_up() { return std::exchange(waiting_, {}); }
  // Requires is_held_from().
  void wait(std::unique_ptr<WriteJob> job) { waiting_.push_back(std::move(job)); }

 private:
  struct Holder {
    const WriteJob* job;
    std::optional<int> db;  // nothing: any
    std::set<std::string, std::less<>> keys;
    std::vector<std::string> patterns;  // with one "*"
    bool has(std::string_view key) const;
  };

  std::vector<Holder> holders_;  // few
  std::vector<std::unique_ptr<WriteJob>> waiting_;
};

}  // namespace ingot::exec
