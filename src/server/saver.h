// SAVE and BGSAVE: a checkpoint of the data beside it, in the place of the last one. On an engine
// without checkpoints, everything is made durable instead. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "src/data/reader_pool.h"
#include "src/metrics/stats.h"
#include "src/server/checkpoints.h"
#include "storage/engine.h"

namespace ingot::server {

class Saver {
 public:
  // `start_s`: what last_save_s() answers until there is one.
  Saver(storage::Engine& engine, metrics::Stats& stats, int64_t start_s)
      : engine_(engine), stats_(stats), last_save_s_(start_s) {}
  ~Saver();  // waits for a save at hand

  // kBusy when one is running.
  storage::Status save(const CheckpointPlan& plan);
  storage::Status save_in_background(const CheckpointPlan& plan);  // once it has begun

  bool saving() const { return saving_; }
  int64_t last_save_s() const { return last_save_s_; }  // Unix
  bool last_save_ok() const { return last_save_ok_; }
  int64_t last_duration_s() const { return last_duration_s_; }  // in the background; -1: none yet
  int64_t current_s() const;  // of the one in the background; -1: none runs

  // What checkpoints take, as far as it was looked at: after each save, and by a task of the
  // `readers` whenever somebody asks for it a minute later.
  CheckpointSpace space(const CheckpointPlan& plan, data::ReaderPool& readers);

 private:
  bool claim() { return !saving_.exchange(true); }
  storage::Status run(const CheckpointPlan& plan);
  storage::Status write(const CheckpointPlan& plan);
  void measure(const std::string& path);

  storage::Engine& engine_;
  metrics::Stats& stats_;
  std::atomic<bool> saving_{false};
  std::atomic<int64_t> last_save_s_;
  std::atomic<bool> last_save_ok_{true};
  std::atomic<int64_t> last_duration_s_{-1};
  std::atomic<int64_t> begun_s_{0};  // steady, of the one in the background; 0: none runs
  std::mutex thread_mutex_;
  std::thread thread_;  // by thread_mutex_
  std::atomic<bool> measuring_{false};
  std::mutex space_mutex_;
  // By space_mutex_:
  CheckpointSpace space_;
  std::chrono::steady_clock::time_point measured_at_;  // never: the epoch
};

}  // namespace ingot::server
