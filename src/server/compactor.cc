// The thread of one rewriting, and what came of it.
#include "src/server/compactor.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "src/metrics/log.h"
#include "src/server/process.h"

namespace ingot::server {
namespace {

// What an engine has written of one compaction before it removes the files that it read.
constexpr uint64_t kWrittenAtATime = 2ull << 30;

int64_t seconds_since(std::chrono::steady_clock::time_point begun) {
  const auto took = std::chrono::steady_clock::now() - begun;
  return std::chrono::duration_cast<std::chrono::seconds>(took).count();
}

}  // namespace

Compactor::Compactor(storage::Engine& engine) : engine_(engine) {
  state_.disk_bytes = engine.stats().disk_bytes;
}

Compactor::~Compactor() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

storage::Status Compactor::start(const std::string& directory, uint64_t free_bytes_min) {
  std::lock_guard lock(mutex_);
  if (state_.running) {
    return {storage::Status::Code::kBusy,
            "Background append only file rewriting already in progress"};
  }
  if (thread_.joinable()) thread_.join();
  state_.running = true;
  begun_ = Clock::now();
  const storage::Status begun = start_thread(&thread_, [this, directory, free_bytes_min] {
    pthread_setname_np(pthread_self(), "compactor");
    metrics::log::notice("Writing all files of the engine anew");
    const storage::Status status = run(directory, free_bytes_min);
    const uint64_t disk_bytes = engine_.stats().disk_bytes;
    std::lock_guard done(mutex_);
    state_.running = false;
    state_.last_s = seconds_since(begun_);
    state_.last_ok = status.ok();
    if (!status.ok()) {
      ++state_.failures_in_row;
      return metrics::log::warning("Writing all files anew failed: {}", status.message());
    }
    ++state_.done;
    state_.failures_in_row = 0;
    state_.disk_bytes = disk_bytes;
    metrics::log::notice("All files of the engine are written anew, {} bytes", disk_bytes);
  });
  if (begun.ok()) return begun;
  state_.running = false;
  state_.last_ok = false;
  ++state_.failures_in_row;
  return begun;
}

storage::Status Compactor::run(const std::string& directory, uint64_t free_bytes_min) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  const uint64_t wanted = free_bytes_min + std::min(engine_.stats().disk_bytes, kWrittenAtATime);
  if (!error && space.available < wanted) {
    return {storage::Status::Code::kNoSpace,
            fmt::format("that takes {} bytes of free disk space, and {} are there", wanted,
                        space.available)};
  }
  return engine_.compact_all(stop_);
}

contract::BackgroundWork Compactor::state() const {
  std::lock_guard lock(mutex_);
  contract::BackgroundWork state = state_;
  if (state.running) state.running_s = seconds_since(begun_);
  return state;
}

}  // namespace ingot::server
