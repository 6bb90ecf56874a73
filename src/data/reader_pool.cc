// The queues of the reader pool and the growing and shrinking of its threads.
#include "src/data/reader_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "storage/check.h"

namespace ingot::data {
namespace {

constexpr size_t kBegunAtOnce = 8;  // look-ups, before what they want is asked for

}  // namespace

ReaderPool::ReaderPool(int threads, std::unique_ptr<storage::ReadRing> ring)
    : ring_(std::move(ring)) {
  resize(threads);
  if (ring_ != nullptr) ring_thread_ = std::thread([this] { run_ring(); });
}

// A look-up may leave a task behind; tasks leave no look-ups.
ReaderPool::~ReaderPool() {
  if (ring_ != nullptr) {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    ring_->wake();
    ring_thread_.join();
  }
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

void ReaderPool::look_up(Lookup lookup) {
  std::vector<Lookup> lookups;
  lookups.push_back(std::move(lookup));
  look_up(std::move(lookups));
}

void ReaderPool::look_up(std::vector<Lookup> lookups) {
  size_t wake;
  bool wake_ring = false;
  {
    std::lock_guard lock(mutex_);
    wake = ring_ == nullptr ? std::min(idle_, lookups.size()) : 0;
    for (Lookup& lookup : lookups) {
      if (ring_ != nullptr) {
        lookups_.push_back(std::move(lookup));
      } else {
        short_.emplace_back([work = std::move(lookup.work)]() mutable { INGOT_CHECK(work()); });
      }
    }
    wake_ring = std::exchange(ring_waits_, false);
  }
  for (size_t i = 0; i < wake; ++i) wake_.notify_one();
  if (wake_ring) ring_->wake();
}

void ReaderPool::run_ring() {
  pthread_setname_np(pthread_self(), "reader-ring");
  std::vector<Lookup> begun;
  std::unique_lock lock(mutex_);
  while (true) {
    while (!lookups_.empty() && begun.size() < kBegunAtOnce &&
           ring_->under_way() + begun.size() < kLookupsUnderWay) {
      begun.push_back(std::move(lookups_.front()));
      lookups_.pop_front();
    }
    const bool rests = begun.empty();
    if (rests && closing_ && ring_->under_way() == 0) return;
    ring_waits_ = rests && lookups_.empty();
    lock.unlock();
    if (!rests) {
      const auto start = std::chrono::steady_clock::now();
      const uint64_t tasks = begun.size();
      for (Lookup& lookup : begun) ring_->run(std::move(lookup.work), std::move(lookup.reads));
      begun.clear();
      post_all();
      count(start, tasks);
    }
    ring_->turn(/*may_wait=*/rests);
    post_all();
    lock.lock();
    ring_waits_ = false;
  }
}

void ReaderPool::resize(int threads) {
  start_threads(std::max<size_t>(static_cast<size_t>(threads), 2));
}

void ReaderPool::post(net::IoThread& thread, Task task) {
  if (std::this_thread::get_id() != ring_thread_.get_id()) return thread.post(std::move(task));
  posts_.emplace_back(&thread, std::move(task));
}

void ReaderPool::post_all() {
  while (!posts_.empty()) {
    net::IoThread* const thread = posts_.back().first;
    const auto theirs = std::ranges::stable_partition(
        posts_, [thread](const auto& post) { return post.first != thread; });
    std::vector<Task> tasks;
    for (auto& post : theirs) tasks.push_back(std::move(post.second));
    posts_.erase(theirs.begin(), theirs.end());
    thread->post([tasks = std::move(tasks)]() mutable {
      for (Task& task : tasks) task();
    });
  }
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
  const auto start = std::chrono::steady_clock::now();
  task();
  task = nullptr;  // what it holds goes before the next wait
  count(start, 1);
}

void ReaderPool::count(std::chrono::steady_clock::time_point start, uint64_t tasks) {
  const auto took = std::chrono::steady_clock::now() - start;
  tasks_run_.fetch_add(tasks, std::memory_order_relaxed);
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
  return short_.size() + long_.size() + lookups_.size();
}

}  // namespace ingot::data
