// Hands RocksDB's background errors and recoveries to the callbacks of EngineOptions.
#include "storage/rocksdb/rocksdb_listener.h"

#include <fmt/format.h>
#include <rocksdb/listener.h>

#include "storage/rocksdb/rocksdb_status.h"

namespace ingot::storage {
namespace {

std::string_view stall_name(rocksdb::WriteStallCondition condition) {
  switch (condition) {
    case rocksdb::WriteStallCondition::kDelayed:
      return "slowed down";
    case rocksdb::WriteStallCondition::kStopped:
      return "stopped";
    case rocksdb::WriteStallCondition::kNormal:
      break;
  }
  return "at full speed again";
}

class RocksdbListener : public rocksdb::EventListener {
 public:
  explicit RocksdbListener(const EngineOptions& options)
      : on_error_(options.on_background_error), on_log_(options.on_log) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    log(fmt::format("RocksDB reports a background error: {}", error->ToString()));
    // A softer error (a compaction found no space) leaves the engine writable.
    const bool writes_refused = error->severity() >= rocksdb::Status::Severity::kHardError;
    if (writes_refused && on_error_) on_error_(to_status(*error));
  }

  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (info.new_bg_error.ok()) {
      log(fmt::format("RocksDB writes again after: {}", info.old_bg_error.ToString()));
    }
  }

  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override {
    log(fmt::format("writes to the space '{}' are {}", info.cf_name,
                    stall_name(info.condition.cur)));
  }

 private:
  void log(const std::string& line) const {
    if (on_log_) on_log_(line);
  }

  const std::function<void(const Status&)> on_error_;
  const std::function<void(const std::string&)> on_log_;
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(const EngineOptions& options) {
  return std::make_shared<RocksdbListener>(options);
}

}  // namespace ingot::storage
