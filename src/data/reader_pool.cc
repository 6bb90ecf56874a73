// The queues of the reader pool and the growing and shrinking of its threads.
#include "src/data/reader_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace ingot::data {

ReaderPool::ReaderPool(int threads) {
  resize(threads);
}

ReaderPool::~ReaderPool() {
  start_threads(0);
}

void ReaderPool::submit(Task task, Work work) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    (work == Work::kShort ? short_ : long_).push_back(std::move(task));
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
}

void ReaderPool::submit(std::vector<Task> tasks) {
  size_t wake;
  {
    std::lock_guard lock(mutex_);
    wake = std::min(idle_, tasks.size());
    for (Task& task : tasks) short_.push_back(std::move(task));
  }
  for (size_t i = 0; i < wake; ++i) wake_.notify_one();
}

void ReaderPool::resize(int threads) {
  start_threads(std::max<size_t>(static_cast<size_t>(threads), 2));
}

void ReaderPool::start_threads(size_t wanted) {
  {
    std::lock_guard lock(mutex_);
    wanted_ = wanted;
  }
  wake_.notify_all();
  while (threads_.size() > wanted) {
    threads_.back().join();
    threads_.pop_back();
  }
  while (threads_.size() < wanted) {
    size_t index = threads_.size();
    threads_.emplace_back([this, index] { run(index); });
  }
}

bool ReaderPool::may_run_long() const {
  return !long_.empty() && long_running_ < std::max<size_t>(wanted_ / 2, 1);
}

bool ReaderPool::has_work() const {
  return !short_.empty() || may_run_long();
}

Work ReaderPool::take(Task* task) {
  // One that takes long always runs, however many short ones there are.
  const bool takes_long = may_run_long() && (short_.empty() || long_running_ == 0);
  std::deque<Task>& queue = takes_long ? long_ : short_;
  *task = std::move(queue.front());
  queue.pop_front();
  return takes_long ? Work::kLong : Work::kShort;
}

void ReaderPool::run(size_t index) {
  pthread_setname_np(pthread_self(), "reader");
  std::unique_lock lock(mutex_);
  while (true) {
    // The threads of a pool that closes drain the queues.
    if (index >= wanted_ && (wanted_ > 0 || (short_.empty() && long_.empty()))) break;
    if (!has_work()) {
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    Task task;
    const Work work = take(&task);
    if (work == Work::kLong) ++long_running_;
    lock.unlock();
    run(task);
    lock.lock();
    if (work == Work::kShort) continue;
    // There may be two to run now: what is short here, and what could not begin beside this.
    --long_running_;
    if (idle_ > 0 && has_work()) wake_.notify_one();
  }
  wake_.notify_all();
}

void ReaderPool::run(Task& task) {
  auto start = std::chrono::steady_clock::now();
  task();
  task = nullptr;  // what it holds goes before the next wait
  auto took = std::chrono::steady_clock::now() - start;
  tasks_run_.fetch_add(1, std::memory_order_relaxed);
  busy_micros_.fetch_add(
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()),
      std::memory_order_relaxed);
}

int ReaderPool::threads() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(wanted_);
}

size_t ReaderPool::queue_depth() const {
  std::lock_guard lock(mutex_);
  return short_.size() + long_.size();
}

}  // namespace ingot::data
