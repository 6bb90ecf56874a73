// The threads that wait for the disk so that nobody else has to. A plain queue: first come, first
// served; the number of threads follows `reader-threads` live.
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

class ReaderPool {
 public:
  using Task = std::move_only_function<void()>;

  explicit ReaderPool(int threads);
  ~ReaderPool();  // runs what is queued, then joins

  void submit(Task task);
  void submit(std::vector<Task> tasks);  // one lock for all
  void resize(int threads);              // waits for surplus threads to end what they do

  int threads() const;
  size_t queue_depth() const;
  uint64_t tasks_run() const { return tasks_run_.load(std::memory_order_relaxed); }
  uint64_t busy_micros() const { return busy_micros_.load(std::memory_order_relaxed); }

 private:
  void run(size_t index);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;            // by mutex_
  size_t wanted_ = 0;                 // by mutex_: threads with an index below it stay
  size_t idle_ = 0;                   // by mutex_
  std::vector<std::thread> threads_;  // by whoever resizes
  std::atomic<uint64_t> tasks_run_{0};
  std::atomic<uint64_t> busy_micros_{0};
};

}  // namespace ingot::data
