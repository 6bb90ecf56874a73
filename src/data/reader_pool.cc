// The queue of the reader pool and the growing and shrinking of its threads.
#include "src/data/reader_pool.h"

#include <pthread.h>

#include <chrono>

namespace ingot::data {

ReaderPool::ReaderPool(int threads) {
  resize(threads);
}

ReaderPool::~ReaderPool() {
  resize(0);
}

void ReaderPool::submit(Task task) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
}

void ReaderPool::submit(std::vector<Task> tasks) {
  size_t wake;
  {
    std::lock_guard lock(mutex_);
    wake = std::min(idle_, tasks.size());
    for (Task& task : tasks) queue_.push_back(std::move(task));
  }
  for (size_t i = 0; i < wake; ++i) wake_.notify_one();
}

void ReaderPool::resize(int threads) {
  size_t wanted = static_cast<size_t>(threads);
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

void ReaderPool::run(size_t index) {
  pthread_setname_np(pthread_self(), "reader");
  std::unique_lock lock(mutex_);
  while (true) {
    // The last thread of a pool that closes drains the queue.
    if (index >= wanted_ && (wanted_ > 0 || queue_.empty())) return;
    if (queue_.empty()) {
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto start = std::chrono::steady_clock::now();
    task();
    task = nullptr;  // what it holds goes before the next wait
    auto took = std::chrono::steady_clock::now() - start;
    tasks_run_.fetch_add(1, std::memory_order_relaxed);
    busy_micros_.fetch_add(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()),
        std::memory_order_relaxed);
    lock.lock();
  }
}

int ReaderPool::threads() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(wanted_);
}

size_t ReaderPool::queue_depth() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

}  // namespace ingot::data
