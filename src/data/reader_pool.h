// The threads that wait for the disk so that nobody else has to. What is short goes before what
// takes long, and half of the threads are kept free of the latter; one of those runs at any time.
// Otherwise first come, first served. The number of threads follows `reader-threads` live.
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
  using Task = std::move_only_function<void()>;
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
  void look_up(Lookup lookup);
  void look_up(std::vector<Lookup> lookups);
  // For what runs in the pool. The tasks of look-ups whose bytes came together are posted together:
  // an I/O thread that is woken for each spends more on that than on its answer.
  void post(net::IoThread& thread, Task task);
  // At least 1; waits for surplus threads to end what they do. Where one is asked for there are
  // two, or what takes long would be in everybody's way.
  void resize(int threads);

  int threads() const;
  size_t queue_depth() const;
  bool has_ring() const { return ring_ != nullptr; }
  uint64_t tasks_run() const { return tasks_run_.load(std::memory_order_relaxed); }
  uint64_t busy_micros() const { return busy_micros_.load(std::memory_order_relaxed); }

 private:
  void run(size_t index);
  void run_ring();
  void post_all();
  void start_threads(size_t wanted);
  bool may_run_long() const;
  bool has_work() const;
  Work take(Task* task);
  void run(Task& task);
  void count(std::chrono::steady_clock::time_point start, uint64_t tasks);

  const std::unique_ptr<storage::ReadRing> ring_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> short_;            // by mutex_
  std::deque<Task> long_;             // by mutex_
  std::deque<Lookup> lookups_;        // by mutex_: for the ring
  bool ring_waits_ = false;           // by mutex_: it has to be woken for a look-up
  bool closing_ = false;              // by mutex_
  size_t long_running_ = 0;           // by mutex_
  size_t wanted_ = 0;                 // by mutex_: threads with an index below it stay
  size_t idle_ = 0;                   // by mutex_
  std::vector<std::thread> threads_;  // by whoever resizes
  std::thread ring_thread_;
  std::vector<std::pair<net::IoThread*, Task>> posts_;  // the ring's thread
  std::atomic<uint64_t> tasks_run_{0};
  std::atomic<uint64_t> busy_micros_{0};
};

}  // namespace ingot::data
