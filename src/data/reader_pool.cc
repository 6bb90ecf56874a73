// The queues of the reader pool and the growing and shrinking of its threads.
#include "src/data/reader_pool.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "src/metrics/log.h"
#include "storage/check.h"

namespace ingot::data {
namespace {

constexpr size_t kBegunAtOnce = 8;  // look-ups, before what they want is asked for
constexpr size_t kThreadsMin = 2;   // beside the one more

}  // namespace

ReaderPool::ReaderPool(int threads, std::unique_ptr<storage::ReadRing> ring)
    : ring_(std::move(ring)) {
  (void)resize(threads);
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
    if (work == Work::kShort) {
      short_.push_back(std::move(task));
    } else {
      long_.push_back({.since = Clock::now(), .task = std::move(task)});
    }
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
}

void ReaderPool::submit_script(ScriptTask task) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    scripts_.push_back({.since = Clock::now(), .task = std::move(task)});
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
}

void ReaderPool::give_up_scripts(std::chrono::milliseconds waited) {
  std::vector<ScriptTask> given_up;
  {
    std::lock_guard lock(mutex_);
    const auto is_old = [now = Clock::now(), waited](Clock::time_point since) {
      return std::chrono::floor<std::chrono::milliseconds>(now - since) >= waited;
    };
    if (!is_old(script_taken_)) return;
    while (!scripts_.empty() && is_old(scripts_.front().since)) {
      given_up.push_back(std::move(scripts_.front().task));
      scripts_.pop_front();
    }
  }
  for (ScriptTask& task : given_up) task(Turn::kGiveUp);
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
      const auto start = Clock::now();
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

bool ReaderPool::resize(int threads) {
  return start_threads(std::max<size_t>(static_cast<size_t>(threads), kThreadsMin));
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

bool ReaderPool::start_threads(size_t wanted) {
  const size_t threads = wanted == 0 ? 0 : wanted + 1;
  std::list<Worker> ended;
  size_t staying = 0;
  {
    std::lock_guard lock(mutex_);
    wanted_ = wanted;
    for (const Worker& worker : workers_) staying += worker.leaves ? 0 : 1;
    // Those first which may be at it for ever.
    for (const bool is_at_it : {true, false}) {
      for (Worker& worker : workers_) {
        if (staying <= threads || worker.leaves || worker.is_at_it != is_at_it) continue;
        worker.leaves = true;
        --staying;
      }
    }
    for (auto at = workers_.begin(); at != workers_.end();) {
      const auto each = at++;
      if (each->ended || wanted == 0) ended.splice(ended.end(), workers_, each);
    }
  }
  wake_.notify_all();
  for (Worker& worker : ended) worker.thread.join();
  for (; staying < threads; ++staying) {
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([this, &worker] { run(worker); });
    } catch (const std::system_error& error) {
      if (staying <= kThreadsMin) throw;
      workers_.pop_back();
      std::lock_guard lock(mutex_);
      wanted_ = staying - 1;
      metrics::log::warning("Can't start more than {} reader threads: {}", wanted_, error.what());
      return false;
    }
  }
  return true;
}

bool ReaderPool::has_place(size_t running, size_t of_others) const {
  const size_t most = std::max<size_t>(wanted_ / 2, 1);
  // There may be more on threads that leave.
  return running < most && running + std::min(of_others, most) <= most;
}

// One that takes long always runs, and one script, however many short ones there are.
ReaderPool::Taken ReaderPool::take() {
  const bool takes_long = may_run_long() && (short_.empty() || long_running_ == 0);
  const bool takes_script = may_run_script() && (short_.empty() || scripts_running_ == 0);
  if (takes_script && (!takes_long || scripts_.front().since < long_.front().since)) {
    auto run = [script = std::move(scripts_.front().task)]() mutable { script(Turn::kRun); };
    scripts_.pop_front();
    script_taken_ = Clock::now();
    return {.task = std::move(run), .running = &scripts_running_};
  }
  Taken taken{.task = std::move(takes_long ? long_.front().task : short_.front()),
              .running = takes_long ? &long_running_ : nullptr};
  takes_long ? long_.pop_front() : short_.pop_front();
  return taken;
}

void ReaderPool::run(Worker& worker) {
  pthread_setname_np(pthread_self(), "reader");
  std::unique_lock lock(mutex_);
  while (true) {
    // The threads of a pool that closes drain the queues.
    if (worker.leaves && (wanted_ > 0 || is_drained())) break;
    if (!has_work()) {
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    Taken taken = take();
    worker.is_at_it = taken.running != nullptr;
    if (worker.is_at_it) ++*taken.running;
    lock.unlock();
    run(taken.task);
    lock.lock();
    if (!worker.is_at_it) continue;
    // There may be two to run now: what is short here, and what could not begin beside this.
    --*taken.running;
    if (idle_ > 0 && has_work()) wake_.notify_one();
  }
  worker.ended = true;
  wake_.notify_all();
}

void ReaderPool::run(Task& task) {
  const auto start = Clock::now();
  task();
  task = nullptr;  // what it holds goes before the next wait
  count(start, 1);
}

void ReaderPool::count(Clock::time_point start, uint64_t tasks) {
  const auto took = Clock::now() - start;
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
  return short_.size() + long_.size() + scripts_.size() + lookups_.size();
}

}  // namespace ingot::data
