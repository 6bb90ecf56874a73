// Writing a checkpoint beside the last one and putting it in its place, here or on a thread.
#include "src/server/saver.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "src/metrics/log.h"
#include "src/server/process.h"

namespace ingot::server {

using std::chrono::duration_cast;
using std::chrono::seconds;
using storage::Status;

namespace {

Status busy() {
  return {Status::Code::kBusy, "Background save already in progress"};
}

int64_t steady_s() {
  return duration_cast<seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Saver::~Saver() {
  std::lock_guard lock(thread_mutex_);
  if (thread_.joinable()) thread_.join();
}

Status Saver::save(const CheckpointPlan& plan) {
  if (!claim()) return busy();
  Status status = run(plan);
  saving_ = false;
  return status;
}

int64_t Saver::current_s() const {
  const int64_t begun = begun_s_;
  return begun == 0 ? -1 : steady_s() - begun;
}

Status Saver::save_in_background(const CheckpointPlan& plan) {
  std::lock_guard lock(thread_mutex_);
  if (!claim()) return busy();
  if (thread_.joinable()) thread_.join();
  begun_s_ = std::max<int64_t>(1, steady_s());
  const Status begun = start_thread(&thread_, [this, plan] {
    pthread_setname_np(pthread_self(), "saver");
    metrics::log::notice("Background saving started");
    if (run(plan).ok()) metrics::log::notice("Background saving terminated with success");
    last_duration_s_ = current_s();
    begun_s_ = 0;
    saving_ = false;
  });
  if (begun.ok()) return begun;
  last_save_ok_ = false;
  begun_s_ = 0;
  saving_ = false;
  return begun;
}

Status Saver::run(const CheckpointPlan& plan) {
  uint64_t changes = stats_.changes_since_save.load();
  Status status = write(plan);
  last_save_ok_ = status.ok();
  if (!status.ok()) {
    metrics::log::warning("Saving the DB failed: {}", status.message());
    return status;
  }
  stats_.changes_since_save.fetch_sub(changes);
  metrics::add(stats_.saves);
  last_save_s_ =
      duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  metrics::log::notice("DB saved on disk");
  measure(plan.path);
  return status;
}

// Built beside the last one, so that a failure leaves that as it was.
Status Saver::write(const CheckpointPlan& plan) {
  if (!engine_.capabilities().checkpoint) return engine_.sync();
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string fresh = plan.path + ".new";
  fs::remove_all(fresh, error);
  fs::remove_all(fresh + ".tmp", error);  // where RocksDB makes it: a link would lead it astray
  Status status = engine_.checkpoint(fresh);
  // To serve it and to check it, one has to know whose it is.
  if (status.ok()) status = storage::claim_directory(engine_.name(), fresh);
  if (status.ok()) status = put_checkpoint(plan, fresh);
  if (!status.ok()) fs::remove_all(fresh, error);  // it would hold the space of what is compacted
  return status;
}

void Saver::measure(const std::string& path) {
  const CheckpointSpace measured = measure_checkpoints(path);
  const std::lock_guard lock(space_mutex_);
  space_ = measured;
  measured_at_ = std::chrono::steady_clock::now();
}

CheckpointSpace Saver::space(const CheckpointPlan& plan, data::ReaderPool& readers) {
  constexpr std::chrono::minutes kInterval{1};
  const std::lock_guard lock(space_mutex_);
  const bool is_fresh = measured_at_ != std::chrono::steady_clock::time_point() &&
                        std::chrono::steady_clock::now() - measured_at_ < kInterval;
  if (!is_fresh && !measuring_.exchange(true)) {
    readers.submit(
        [this, path = plan.path] {
          measure(path);
          measuring_ = false;
        },
        data::Work::kLong);
  }
  return space_;
}

}  // namespace ingot::server
