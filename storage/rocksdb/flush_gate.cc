// The gate that flushes pass before they begin, and the Env that leads them there.
#include "storage/rocksdb/flush_gate.h"

#include <chrono>
#include <optional>
#include <utility>

namespace ingot::storage {
namespace {

constexpr std::chrono::milliseconds kWriteWait{20};
constexpr std::chrono::milliseconds kWakeInterval{100};
constexpr std::chrono::seconds kBeginWait{1};

// What this thread has been given to run, always of one pool.
thread_local std::optional<rocksdb::Env::Priority> pool_of_thread;
thread_local bool thread_passes = false;  // between the gate and the begin of its flush

class GatedEnv : public rocksdb::EnvWrapper {
 public:
  GatedEnv(std::unique_ptr<rocksdb::Env> target, std::shared_ptr<FlushGate> gate)
      : EnvWrapper(std::move(target)), gate_(std::move(gate)) {
    // Or each file would be reached through the old interface, which knows less of errors.
    file_system_ = EnvWrapper::target()->GetFileSystem();
    system_clock_ = EnvWrapper::target()->GetSystemClock();
  }

  const char* Name() const override { return "ingot.gated"; }

  void Schedule(void (*function)(void*), void* argument, Priority pool, void* tag,
                void (*unscheduled)(void*)) override {
    auto job = std::make_unique<Job>(Job{gate_, pool, function, argument, unscheduled});
    EnvWrapper::Schedule(run, job.release(), pool, tag, forget);
  }

 private:
  struct Job {
    std::shared_ptr<FlushGate> gate;  // behind the function's end the database may be gone
    Priority pool;
    void (*function)(void*);
    void* argument;
    void (*unscheduled)(void*);
  };

  static void run(void* raw) {
    const std::unique_ptr<Job> job(static_cast<Job*>(raw));
    pool_of_thread = job->pool;
    if (job->pool == HIGH) job->gate->pass();
    job->function(job->argument);
    job->gate->has_begun();
  }
  static void forget(void* raw) {
    const std::unique_ptr<Job> job(static_cast<Job*>(raw));
    if (job->unscheduled != nullptr) job->unscheduled(job->argument);
  }

  const std::shared_ptr<FlushGate> gate_;
};

}  // namespace

void FlushGate::begin_write() {
  std::lock_guard lock(mutex_);
  ++begun_;
}

void FlushGate::end_write() {
  std::lock_guard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

// A flush that has passed, and ends a sync of its logs with the error that stops RocksDB, waits for
// no other.
void FlushGate::close() {
  has_begun();
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.wait_for(lock, kBeginWait, [this] { return passing_ == 0; });
}

void FlushGate::open() {
  std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

void FlushGate::pass() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kWriteWait, [this, begun = begun_] { return ended_ >= begun; });
  while (!changed_.wait_for(lock, kWakeInterval, [this] { return !closed_; })) {
    lock.unlock();
    wake_();
    lock.lock();
  }
  ++passing_;
  thread_passes = true;
}

void FlushGate::has_begun() {
  if (!std::exchange(thread_passes, false)) return;
  std::lock_guard lock(mutex_);
  --passing_;
  changed_.notify_all();
}

bool on_flush_thread() {
  return pool_of_thread == rocksdb::Env::HIGH;
}

bool on_compaction_thread() {
  return pool_of_thread == rocksdb::Env::LOW;
}

std::unique_ptr<rocksdb::Env> make_gated_env(std::unique_ptr<rocksdb::Env> target,
                                             std::shared_ptr<FlushGate> gate) {
  return std::make_unique<GatedEnv>(std::move(target), std::move(gate));
}

}  // namespace ingot::storage
