// Watching RocksDB's logs: what was appended, what was synced, where one was torn; and keeping the
// file of the next one ready.
#include "storage/rocksdb/log_file_system.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "storage/rocksdb/rocksdb_status.h"
#include "storage/rocksdb/table_file_system.h"

namespace ingot::storage {
namespace {

using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The name and the first bytes of a log are worth a wait, where the disk has no room for them
// although it gave it: without, RocksDB may not begin another log before it is opened again.
template <typename Attempt, typename IsWorthIt>
IOStatus insist(const Attempt& attempt, const IsWorthIt& is_worth_it) {
  constexpr std::chrono::seconds kWait{1};
  constexpr std::chrono::milliseconds kPause{10};
  IOStatus status = attempt();
  const auto until = std::chrono::steady_clock::now() + kWait;
  while (status.IsNoSpace() && is_worth_it() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPause);
    status = attempt();
  }
  return status;
}

IOStatus to_io_status(const Status& status) {
  if (status.ok()) return IOStatus::OK();
  const bool is_full = status.code() == Status::Code::kNoSpace;
  return is_full ? IOStatus::NoSpace(status.message()) : IOStatus::IOError(status.message());
}

// The file of the log that RocksDB will begin next. It is there before RocksDB asks for it, in the
// middle of a write: RocksDB never forgets that a log could not be created.
class NextLog {
 public:
  NextLog(std::shared_ptr<rocksdb::FileSystem> disk, std::string path)
      : disk_(std::move(disk)), path_(std::move(path)) {}

  // Unless it is there already.
  IOStatus create() {
    std::lock_guard lock(mutex_);
    return file_ != nullptr ? IOStatus::OK()
                            : disk_->NewWritableFile(path_, options_, &file_, nullptr);
  }
  // It becomes the file at `path`.
  IOStatus take(const std::string& path, const rocksdb::FileOptions& options,
                std::unique_ptr<FSWritableFile>* result, IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    options_ = options;
    const bool is_there = file_ != nullptr;
    IOStatus status = insist(
        [&] {
          return is_there ? disk_->RenameFile(path_, path, IOOptions(), debug)
                          : disk_->NewWritableFile(path, options, result, debug);
        },
        [] { return true; });
    if (status.ok() && is_there) *result = std::move(file_);
    return status;
  }

 private:
  const std::shared_ptr<rocksdb::FileSystem> disk_;
  const std::string path_;
  std::mutex mutex_;
  rocksdb::FileOptions options_;          // guarded by mutex_: those of the newest log
  std::unique_ptr<FSWritableFile> file_;  // guarded by mutex_
};

class LogFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  LogFile(std::unique_ptr<FSWritableFile>&& file, const std::string& path, uint64_t number,
          LogLedger* ledger, NextLog* next)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(path),
        ledger_(ledger),
        next_(next),
        log_(ledger->begin(
            number, {.sync = [this] { return sync_file(); },
                     .allocate = [this](uint64_t offset,
                                        uint64_t bytes) { return allocate_file(offset, bytes); },
                     .cut = [this](uint64_t size) { return cut_file(size); }})) {}
  ~LogFile() override { ledger_->end(*log_); }

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    if (LogLedger::torn(*log_)) return IOStatus::OK();
    if (const Status begun = ledger_->before_append(*log_); !begun.ok()) return to_io_status(begun);
    IOStatus status =
        insist([&] { return FSWritableFileOwnerWrapper::Append(data, options, debug); },
               [this] { return is_empty(); });
    if (status.ok()) {
      ledger_->appended(*log_, data.size());
    } else {
      ledger_->tear(*log_);
    }
    return status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return to_io_status(ledger_->sync(*log_));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    ledger_->end(*log_);
    return FSWritableFileOwnerWrapper::Close(options, debug);
  }

 private:
  // Also of what a write that failed has left.
  bool is_empty() const {
    std::error_code error;
    return LogLedger::written(*log_) == 0 && std::filesystem::file_size(path_, error) == 0;
  }
  Status cut_file(uint64_t size) {
    return to_status(FSWritableFileOwnerWrapper::Truncate(size, IOOptions(), nullptr));
  }
  Status sync_file() { return to_status(FSWritableFileOwnerWrapper::Sync(IOOptions(), nullptr)); }
  Status allocate_file(uint64_t offset, uint64_t bytes) {
    IOStatus status = next_->create();
    if (status.ok()) {
      status = FSWritableFileOwnerWrapper::Allocate(offset, bytes, IOOptions(), nullptr);
    }
    return to_status(status);
  }

  const std::string path_;
  LogLedger* const ledger_;
  NextLog* const next_;
  const std::shared_ptr<LogLedger::Log> log_;
};

class LogFileSystem : public rocksdb::FileSystemWrapper {
 public:
  LogFileSystem(const std::shared_ptr<FileSystem>& target, LogLedger* ledger)
      : FileSystemWrapper(target),
        ledger_(ledger),
        next_(target, ledger->directory() + "/NEXT_LOG") {}

  const char* Name() const override { return "ingot.log"; }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* debug) override {
    uint64_t number = 0;
    // A checkpoint copies logs elsewhere.
    if (!ledger_->is_in_directory(path) || !is_log(path, &number)) {
      return target()->NewWritableFile(path, options, result, debug);
    }
    IOStatus status = next_.take(path, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<LogFile>(std::move(*result), path, number, ledger_, &next_);
    }
    return status;
  }

 private:
  static bool is_log(const std::filesystem::path& path, uint64_t* number) {
    const std::string stem = path.stem().string();
    return path.extension() == ".log" &&
           std::from_chars(stem.data(), stem.data() + stem.size(), *number).ec == std::errc();
  }

  LogLedger* const ledger_;
  NextLog next_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_log_env(rocksdb::Env* target, LogLedger* ledger,
                                           const DiskRoom* room) {
  return rocksdb::NewCompositeEnv(std::make_shared<LogFileSystem>(
      make_table_file_system(target->GetFileSystem(), room), ledger));
}

}  // namespace ingot::storage
