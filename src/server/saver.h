// SAVE and BGSAVE: a checkpoint of the data beside it, replacing the last one. On an engine without
// checkpoints, everything is made durable instead. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "src/metrics/stats.h"
#include "storage/engine.h"

namespace ingot::server {

class Saver {
 public:
  // `path`: the directory to write. `start_s`: what last_save_s() answers until there is one.
  Saver(storage::Engine& engine, metrics::Stats& stats, std::string path, int64_t start_s)
      : engine_(engine), stats_(stats), path_(std::move(path)), last_save_s_(start_s) {}
  ~Saver();  // waits for a save at hand

  storage::Status save();     // kBusy when one is running
  bool save_in_background();  // false when one is running

  bool saving() const { return saving_; }
  int64_t last_save_s() const { return last_save_s_; }  // Unix
  bool last_save_ok() const { return last_save_ok_; }
  int64_t last_duration_s() const { return last_duration_s_; }  // in the background; -1: none yet
  int64_t current_s() const;  // of the one in the background; -1: none runs

 private:
  bool claim() { return !saving_.exchange(true); }
  storage::Status run();
  storage::Status write();

  storage::Engine& engine_;
  metrics::Stats& stats_;
  const std::string path_;
  std::atomic<bool> saving_{false};
  std::atomic<int64_t> last_save_s_;
  std::atomic<bool> last_save_ok_{true};
  std::atomic<int64_t> last_duration_s_{-1};
  std::atomic<int64_t> begun_s_{0};  // steady, of the one in the background; 0: none runs
  std::mutex thread_mutex_;
  std::thread thread_;  // by thread_mutex_
};

}  // namespace ingot::server
