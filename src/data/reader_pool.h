// The threads that wait for the disk so that nobody else has to. What is short goes before what
// takes long and before scripts, which may never end. Half of the threads are kept free of both,
// and neither takes the last place of the other: for that there is one thread more than
// `reader-threads` says. One of each runs at any time. Otherwise first come, first served.
//
// Look-ups go to a thread of their own where there is a ReadRing: it keeps as many reads under way
// as a hundred threads would. Without one they are tasks like others.
//
// Threads: everything by any thread; resize() by one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/connection.h"
#include "storage/read_ring.h"

namespace ingot::data {

// What a task may cost.
enum class Work : uint8_t {
  kShort,  // some reads of the disk, or a walk over contract::kWalkedAtOnce elements
  kLong,   // whatever it takes
};

class ReaderPool {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::move_only_function<void()>;
  // What runs scripts: it may have to wait until others end, and then be told to give up.
  enum class Turn : uint8_t { kRun, kGiveUp };
  using ScriptTask = std::move_only_function<void(Turn)>;
  // Short work that reads little, and may run again from its beginning: false, which only a
  // ReadRing brings about, while what it reads has not come. `reads` may want something already.
  struct Lookup {
    storage::ReadRing::Work work;
    storage::NoWaitReads reads;
  };

  // Enough to keep a fast device busy.
  static constexpr unsigned kLookupsUnderWay = 128;

  // `ring` may be null, or has room for kLookupsUnderWay.
  explicit ReaderPool(int threads, std::unique_ptr<storage::ReadRing> ring = nullptr);
  ~ReaderPool();  // runs what is queued, then joins

  void submit(Task task, Work work = Work::kShort);
  void submit_script(ScriptTask task);
  // Those that have waited for so long, if none has got its turn meanwhile, give up: here and now.
  void give_up_scripts(std::chrono::milliseconds waited);
  void look_up(Lookup lookup);
  void look_up(std::vector<Lookup> lookups);
  // For what runs in the pool. The tasks of look-ups whose bytes came together are posted together:
  // an I/O thread that is woken for each spends more on that than on its answer.
  void post(net::IoThread& thread, Task task);
  // At least 1. Where one is asked for there are two, or what takes long would be in everybody's
  // way. Surplus threads go when they have done what they are at; nobody waits for that.
  // False: there are fewer, because the system gives the process no more threads.
  [[nodiscard]] bool resize(int threads);

  int threads() const;
  size_t queue_depth() const;
  bool has_ring() const { return ring_ != nullptr; }
  uint64_t tasks_run() const { return tasks_run_.load(std::memory_order_relaxed); }
  uint64_t busy_micros() const { return busy_micros_.load(std::memory_order_relaxed); }

 private:
  struct Worker {
    std::thread thread;
    // By mutex_:
    bool is_at_it = false;  // at long work, or a script
    bool leaves = false;
    bool ended = false;
  };
  template <typename T>
  struct Waiting {
    Clock::time_point since;
    T task;
  };
  struct Taken {
    Task task;
    size_t* running;  // where it counts; null: it is short
  };

  void run(Worker& worker);
  void run_ring();
  void post_all();
  bool start_threads(size_t wanted);
  bool has_place(size_t running, size_t of_others) const;
  bool may_run_long() const { return !long_.empty() && has_place(long_running_, scripts_running_); }
  bool may_run_script() const {
    return !scripts_.empty() && has_place(scripts_running_, long_running_);
  }
  bool has_work() const { return !short_.empty() || may_run_long() || may_run_script(); }
  bool is_drained() const { return short_.empty() && long_.empty() && scripts_.empty(); }
  Taken take();
  void run(Task& task);
  void count(Clock::time_point start, uint64_t tasks);

  const std::unique_ptr<storage::ReadRing> ring_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> short_;                   // by mutex_
  std::deque<Waiting<Task>> long_;           // by mutex_
  std::deque<Waiting<ScriptTask>> scripts_;  // by mutex_
  std::deque<Lookup> lookups_;               // by mutex_: for the ring
  bool ring_waits_ = false;                  // by mutex_: it has to be woken for a look-up
  bool closing_ = false;                     // by mutex_
  size_t long_running_ = 0;                  // by mutex_
  size_t scripts_running_ = 0;               // by mutex_
  Clock::time_point script_taken_;           // by mutex_: the last one
  size_t wanted_ = 0;                        // by mutex_: threads beside the one more; 0: the end
  size_t idle_ = 0;                          // by mutex_
  std::list<Worker> workers_;                // by whoever resizes
  std::thread ring_thread_;
  std::vector<std::pair<net::IoThread*, Task>> posts_;  // the ring's thread
  std::atomic<uint64_t> tasks_run_{0};
  std::atomic<uint64_t> busy_micros_{0};
};

}  // namespace ingot::data
