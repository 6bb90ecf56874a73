// Tests only: a RocksDB file system whose disk fails on demand.
#include "storage/rocksdb/fault_file_system.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

namespace ingot::storage {
namespace {

using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr auto kSlowAppend = std::chrono::seconds(7);
constexpr auto kSlowSync = std::chrono::milliseconds(500);

// What the control file asks for. Thread safe.
class FaultControl {
 public:
  struct Faults {
    bool no_space = false;
    bool no_append = false;
    bool no_create = false;
    bool no_rename = false;
    bool fail_sync = false;
    bool slow_append = false;
    bool slow_sync = false;
    bool read_only = false;
  };

  explicit FaultControl(std::string path) : path_(std::move(path)) {}

  Faults current() {
    constexpr auto kInterval = std::chrono::milliseconds(10);
    std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - read_at_ >= kInterval) {
      faults_ = read();
      read_at_ = now;
    }
    return faults_;
  }

 private:
  Faults read() const {
    Faults faults;
    std::ifstream file(path_);
    for (std::string word; file >> word;) {
      faults.no_space |= word == "no-space";
      faults.no_append |= word == "no-space" || word == "no-append";
      faults.no_create |= word == "no-create";
      faults.no_rename |= word == "no-rename";
      faults.fail_sync |= word == "fail-sync";
      faults.slow_append |= word == "slow-append";
      faults.slow_sync |= word == "slow-sync";
      faults.read_only |= word == "read-only";
    }
    return faults;
  }

  const std::string path_;
  std::mutex mutex_;
  Faults faults_;                                  // guarded by mutex_
  std::chrono::steady_clock::time_point read_at_;  // guarded by mutex_
};

// As the POSIX file system reports ENOSPC.
IOStatus no_space() {
  IOStatus status = IOStatus::NoSpace("injected: No space left on device");
  status.SetRetryable(true);
  return status;
}

// As the POSIX file system reports EIO: not retryable.
IOStatus sync_failed() {
  return IOStatus::IOError("injected: While fsync: Input/output error");
}

IOStatus read_only() {
  return IOStatus::IOError("injected: Read-only file system");
}

class FaultFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultFile(std::unique_ptr<FSWritableFile>&& file, std::shared_ptr<FaultControl> control)
      : FSWritableFileOwnerWrapper(std::move(file)), control_(std::move(control)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    if (control_->current().slow_append) std::this_thread::sleep_for(kSlowAppend);
    if (control_->current().read_only) return read_only();
    if (!control_->current().no_append) {
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }
    if (use_direct_io()) return no_space();  // writes whole pages or nothing
    const IOStatus half =
        FSWritableFileOwnerWrapper::Append(Slice(data.data(), data.size() / 2), options, debug);
    return half.ok() ? no_space() : half;
  }

  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }

  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    if (control_->current().no_append) return no_space();
    return FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug);
  }

  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*verification*/,
                            IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }

  IOStatus Allocate(uint64_t offset, uint64_t bytes, const IOOptions& options,
                    IODebugContext* debug) override {
    if (control_->current().no_space) return no_space();
    return FSWritableFileOwnerWrapper::Allocate(offset, bytes, options, debug);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const FaultControl::Faults faults = control_->current();
    if (faults.slow_sync) std::this_thread::sleep_for(kSlowSync);
    if (faults.fail_sync) return sync_failed();
    return FSWritableFileOwnerWrapper::Sync(options, debug);
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const FaultControl::Faults faults = control_->current();
    if (faults.slow_sync) std::this_thread::sleep_for(kSlowSync);
    if (faults.fail_sync) return sync_failed();
    return FSWritableFileOwnerWrapper::Fsync(options, debug);
  }

 private:
  const std::shared_ptr<FaultControl> control_;
};

class FaultFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem(const std::shared_ptr<FileSystem>& target, const std::string& control_file)
      : FileSystemWrapper(target), control_(std::make_shared<FaultControl>(control_file)) {}

  const char* Name() const override { return "ingot.fault"; }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* debug) override {
    const FaultControl::Faults faults = control_->current();
    if (faults.read_only) return read_only();
    if (faults.no_create) return no_space();
    return wrap(target()->NewWritableFile(path, options, result, debug), result);
  }

  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result,
                              IODebugContext* debug) override {
    return wrap(target()->ReopenWritableFile(path, options, result, debug), result);
  }

  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                             const rocksdb::FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result,
                             IODebugContext* debug) override {
    return wrap(target()->ReuseWritableFile(path, old_path, options, result, debug), result);
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    if (control_->current().no_rename) return no_space();
    return target()->RenameFile(from, to, options, debug);
  }

 private:
  IOStatus wrap(IOStatus status, std::unique_ptr<FSWritableFile>* file) const {
    if (status.ok()) *file = std::make_unique<FaultFile>(std::move(*file), control_);
    return status;
  }

  const std::shared_ptr<FaultControl> control_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_fault_env(const std::string& control_file) {
  return rocksdb::NewCompositeEnv(
      std::make_shared<FaultFileSystem>(rocksdb::FileSystem::Default(), control_file));
}

}  // namespace ingot::storage
