// Writing a checkpoint beside the last one and putting it in its place, here or on a thread.
#include "src/server/saver.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "src/metrics/log.h"
#include "storage/durable_file.h"

namespace ingot::server {

using std::chrono::duration_cast;
using std::chrono::seconds;
using storage::Status;

Saver::~Saver() {
  std::lock_guard lock(thread_mutex_);
  if (thread_.joinable()) thread_.join();
}

Status Saver::save() {
  if (!claim()) return {Status::Code::kBusy, "Background save already in progress"};
  Status status = run();
  saving_ = false;
  return status;
}

namespace {

int64_t steady_s() {
  return duration_cast<seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int64_t Saver::current_s() const {
  const int64_t begun = begun_s_;
  return begun == 0 ? -1 : steady_s() - begun;
}

bool Saver::save_in_background() {
  std::lock_guard lock(thread_mutex_);
  if (!claim()) return false;
  if (thread_.joinable()) thread_.join();
  metrics::log::notice("Background saving started");
  begun_s_ = std::max<int64_t>(1, steady_s());
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "saver");
    if (run().ok()) metrics::log::notice("Background saving terminated with success");
    last_duration_s_ = current_s();
    begun_s_ = 0;
    saving_ = false;
  });
  return true;
}

Status Saver::run() {
  uint64_t changes = stats_.changes_since_save.load();
  Status status = write();
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
  return status;
}

// Built beside the last one, so that a failure leaves that as it was.
Status Saver::write() {
  if (!engine_.capabilities().checkpoint) return engine_.sync();
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path last = path_;
  const fs::path fresh = path_ + ".new";
  const fs::path old = path_ + ".old";
  fs::remove_all(fresh, error);
  if (Status status = engine_.checkpoint(fresh.string()); !status.ok()) return status;
  // To serve it and to check it, one has to know whose it is.
  if (Status status = storage::claim_directory(engine_.name(), fresh.string()); !status.ok()) {
    fs::remove_all(fresh, error);  // its links would hold the space of what is compacted
    return status;
  }
  fs::remove_all(old, error);
  if (!error && fs::exists(last, error)) fs::rename(last, old, error);
  if (!error) fs::rename(fresh, last, error);
  if (error) return {Status::Code::kIo, error.message()};
  if (Status status = storage::sync_directory(last.parent_path().string()); !status.ok())
    return status;
  fs::remove_all(old, error);
  return {};
}

}  // namespace ingot::server
