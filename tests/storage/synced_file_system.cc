// A RocksDB file system that remembers how much of each file was synced.
#include "tests/storage/synced_file_system.h"

#include <filesystem>

namespace ingot::storage {
namespace {

using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class SyncedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  SyncedFile(std::unique_ptr<FSWritableFile>&& file, SyncedSizes::Synced synced)
      : FSWritableFileOwnerWrapper(std::move(file)), synced_(std::move(synced)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) written_ += data.size();
    return status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const uint64_t before = written_;
    return note(FSWritableFileOwnerWrapper::Sync(options, debug), before);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const uint64_t before = written_;
    return note(FSWritableFileOwnerWrapper::Fsync(options, debug), before);
  }

 private:
  IOStatus note(IOStatus status, uint64_t bytes) {
    if (status.ok()) *synced_ = bytes;
    return status;
  }

  const SyncedSizes::Synced synced_;
  std::atomic<uint64_t> written_ = 0;  // a log is appended to while another thread syncs it
};

class SyncedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  SyncedFileSystem(const std::shared_ptr<FileSystem>& target, std::shared_ptr<SyncedSizes> sizes)
      : FileSystemWrapper(target), sizes_(std::move(sizes)) {}

  const char* Name() const override { return "ingot.synced"; }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<SyncedFile>(std::move(*result), sizes_->create(path));
    }
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    IOStatus status = target()->RenameFile(from, to, options, debug);
    if (status.ok()) sizes_->rename(from, to);
    return status;
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    sizes_->remove(path);
    return target()->DeleteFile(path, options, debug);
  }

 private:
  const std::shared_ptr<SyncedSizes> sizes_;
};

}  // namespace

SyncedSizes::Synced SyncedSizes::create(const std::string& path) {
  std::lock_guard lock(mutex_);
  return bytes_[path] = std::make_shared<std::atomic<uint64_t>>(0);
}

void SyncedSizes::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  if (auto node = bytes_.extract(from)) {
    bytes_.erase(to);
    node.key() = to;
    bytes_.insert(std::move(node));
  }
}

void SyncedSizes::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  bytes_.erase(path);
}

void SyncedSizes::copy_synced(const std::string& directory, const std::string& to) const {
  std::filesystem::create_directory(to);
  std::lock_guard lock(mutex_);
  for (const auto& [path, bytes] : bytes_) {
    const std::filesystem::path from(path);
    if (from.parent_path() != directory || !std::filesystem::exists(from)) continue;
    const std::filesystem::path copy = to / from.filename();
    std::filesystem::copy_file(from, copy);
    std::filesystem::resize_file(copy, *bytes);
  }
}

std::unique_ptr<rocksdb::Env> make_synced_env(const std::shared_ptr<SyncedSizes>& sizes) {
  return rocksdb::NewCompositeEnv(
      std::make_shared<SyncedFileSystem>(rocksdb::FileSystem::Default(), sizes));
}

}  // namespace ingot::storage
