// The threads that wait for the disk so that nobody else has to. What is short goes before what
// takes long, and half of the threads are kept free of the latter; one of those runs at any time.
// Otherwise first come, first served. The number of threads follows `reader-threads` live.
//
// Threads: everything by any thread; resize() by one at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace ingot::data {

// What a task may cost.
enum class Work : uint8_t {
  kShort,  // some reads of the disk, or a walk over contract::kWalkedAtOnce elements
  kLong,   // whatever it takes
};

class ReaderPool {
 public:
  using Task = std::move_only_function<void()>;

  explicit ReaderPool(int threads);
  ~ReaderPool();  // runs what is queued, then joins

  void submit(Task task, Work work = Work::kShort);
  void submit(std::vector<Task> tasks);  // short ones; one lock for all
  // At least 1; waits for surplus threads to end what they do. Where one is asked for there are
  // two, or what takes long would be in everybody's way.
  void resize(int threads);

  int threads() const;
  size_t queue_depth() const;
  uint64_t tasks_run() const { return tasks_run_.load(std::memory_order_relaxed); }
  uint64_t busy_micros() const { return busy_micros_.load(std::memory_order_relaxed); }

 private:
  void run(size_t index);
  void start_threads(size_t wanted);
  bool may_run_long() const;
  bool has_work() const;
  Work take(Task* task);
  void run(Task& task);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> short_;            // by mutex_
  std::deque<Task> long_;             // by mutex_
  size_t long_running_ = 0;           // by mutex_
  size_t wanted_ = 0;                 // by mutex_: threads with an index below it stay
  size_t idle_ = 0;                   // by mutex_
  std::vector<std::thread> threads_;  // by whoever resizes
  std::atomic<uint64_t> tasks_run_{0};
  std::atomic<uint64_t> busy_micros_{0};
};

}  // namespace ingot::data
