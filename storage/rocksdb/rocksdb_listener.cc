// Hands RocksDB's background errors, recoveries and log lines to those who want to know.
#include "storage/rocksdb/rocksdb_listener.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>

#include <array>
#include <atomic>
#include <chrono>
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
  RocksdbListener(const EngineOptions& options, RocksdbNews news)
      : news_(std::move(news)), on_log_(options.on_log) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    const bool is_stop = error->severity() >= rocksdb::Status::Severity::kHardError;
    if (is_stop || !error->IsNoSpace() || is_time_to_tell()) {
      log(fmt::format("RocksDB reports a background error: {}", error->ToString()));
    }
    // A softer error (a compaction found no space) leaves the engine writable, unless it was
    // stopped before: RocksDB 7.8 never forgets that, and refuses writes over any error then. It
    // tries the compaction again by itself.
    if (is_stop) {
      was_stopped_ = true;
      news_.on_stopped(to_stop(*error));
    } else if (was_stopped_ && error->IsNoSpace()) {
      *error = rocksdb::Status();
    }
  }

  // RocksDB itself would wait for as much space as all its memtables could take, and look for it
  // every five seconds; a compaction may do that.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status error,
                            bool* auto_recovery) override {
    if (error.severity() >= rocksdb::Status::Severity::kHardError) *auto_recovery = false;
  }

  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (!info.new_bg_error.ok()) return;
    news_.on_recovered();
    if (info.old_bg_error.severity() >= rocksdb::Status::Severity::kHardError) {
      log(fmt::format("RocksDB writes again after: {}", info.old_bg_error.ToString()));
    }
  }

  void OnFlushBegin(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    news_.on_flush_begun();
  }

  void OnCompactionCompleted(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& info) override {
    if (info.compaction_reason == rocksdb::CompactionReason::kManualCompaction) return;
    news_.on_compacted(info.cf_name, info.status.IsNoSpace());
  }

  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override {
    log(fmt::format("writes to the space '{}' are {}", info.cf_name,
                    stall_name(info.condition.cur)));
  }

 private:
  // A compaction that finds no room is tried again each second.
  bool is_time_to_tell() {
    constexpr std::chrono::minutes kInterval{1};
    const auto now = std::chrono::steady_clock::now();
    if (now - told_at_.load() < kInterval) return false;
    told_at_ = now;
    return true;
  }
  void log(const std::string& line) const {
    if (on_log_) on_log_(line);
  }

  const RocksdbNews news_;
  const std::function<void(const std::string&)> on_log_;
  std::atomic<bool> was_stopped_ = false;
  std::atomic<std::chrono::steady_clock::time_point> told_at_{};
};

class ErrorLogger : public rocksdb::Logger {
 public:
  explicit ErrorLogger(std::function<void(const std::string&)> on_log)
      : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL), on_log_(std::move(on_log)) {}

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (!on_log_ || is_known(format)) return;
    std::array<char, 512> line;
    vsnprintf(line.data(), line.size(), format, arguments);
    on_log_(fmt::format("RocksDB: {}", line.data()));
  }

 private:
  // From the listener, or because writes are refused meanwhile; and said each second.
  static bool is_known(std::string_view format) {
    return format.find("Waiting after background") != std::string_view::npos ||
           format.find("is less than needed headroom") != std::string_view::npos;
  }

  const std::function<void(const std::string&)> on_log_;
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> make_rocksdb_listener(const EngineOptions& options,
                                                              RocksdbNews news) {
  return std::make_shared<RocksdbListener>(options, std::move(news));
}

std::shared_ptr<rocksdb::Logger> make_rocksdb_logger(const EngineOptions& options) {
  return std::make_shared<ErrorLogger>(options.on_log);
}

}  // namespace ingot::storage
