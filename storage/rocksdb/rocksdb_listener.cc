// Hands RocksDB's background errors, recoveries and log lines to those who want to know.
#include "storage/rocksdb/rocksdb_listener.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>

#include <array>
#include <cstdarg>
#include <cstdio>

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
  RocksdbListener(const EngineOptions& options, std::function<void(const Status&)> on_stopped)
      : on_stopped_(std::move(on_stopped)), on_log_(options.on_log) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    log(fmt::format("RocksDB reports a background error: {}", error->ToString()));
    // A softer error (a compaction found no space) leaves the engine writable.
    const bool writes_refused = error->severity() >= rocksdb::Status::Severity::kHardError;
    if (writes_refused) on_stopped_(to_stop(*error));
  }

  // RocksDB itself would wait for as much space as all its memtables could take, and look for it
  // every five seconds; a compaction may do that.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status error,
                            bool* auto_recovery) override {
    if (error.severity() >= rocksdb::Status::Severity::kHardError) *auto_recovery = false;
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

  const std::function<void(const Status&)> on_stopped_;
  const std::function<void(const std::string&)> on_log_;
};

class ErrorLogger : public rocksdb::Logger {
 public:
  explicit ErrorLogger(std::function<void(const std::string&)> on_log)
      : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL), on_log_(std::move(on_log)) {}

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (!on_log_) return;
    std::array<char, 512> line;
    vsnprintf(line.data(), line.size(), format, arguments);
    on_log_(fmt::format("RocksDB: {}", line.data()));
  }

 private:
  const std::function<void(const std::string&)> on_log_;
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(
    const EngineOptions& options, std::function<void(const Status&)> on_stopped) {
  return std::make_shared<RocksdbListener>(options, std::move(on_stopped));
}

std::shared_ptr<rocksdb::Logger> make_rocksdb_logger(const EngineOptions& options) {
  return std::make_shared<ErrorLogger>(options.on_log);
}

}  // namespace ingot::storage
