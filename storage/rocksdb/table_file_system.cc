// Table files that can be read without waiting.
#include "storage/rocksdb/table_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "storage/no_wait_reads.h"
#include "storage/rocksdb/young_tables.h"

namespace ingot::storage {
namespace {

using rocksdb::FSRandomAccessFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus failed(const std::string& what, const std::string& path, int error) {
  const std::string text = what + " " + path;
  if (error == ENOENT) return IOStatus::PathNotFound(text, std::strerror(error));
  return IOStatus::IOError(text, std::strerror(error));
}

// What there is, up to `bytes`; less only at the end of the file. -1 with errno.
ssize_t read_waiting(const OpenFile& file, uint64_t offset, size_t bytes, char* into) {
  size_t got = 0;
  while (got < bytes && offset + got < file.size()) {
    const ssize_t more =
        ::pread(file.fd(), into + got, bytes - got, static_cast<off_t>(offset + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return -1;
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  return static_cast<ssize_t>(got);
}

class TableFile : public FSRandomAccessFile {
 public:
  TableFile(std::string path, std::shared_ptr<const OpenFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& /*options*/, Slice* result,
                char* scratch, IODebugContext* /*debug*/) const override {
    NoWaitReads* const reads = NoWaitReads::current();
    if (reads == nullptr) {
      const ssize_t got = read_waiting(*file_, offset, bytes, scratch);
      if (got < 0) return failed("While pread from", path_, errno);
      *result = Slice(scratch, static_cast<size_t>(got));
      return IOStatus::OK();
    }
    const NoWaitReads::Answer answer = reads->read(file_, offset, bytes, scratch);
    switch (answer.kind) {
      case NoWaitReads::Answer::Kind::kWanted:
        return IOStatus::Aborted("not in memory yet");
      case NoWaitReads::Answer::Kind::kFailed:
        return failed("While reading", path_, answer.error);
      case NoWaitReads::Answer::Kind::kCame:
        break;
    }
    *result = Slice(scratch, answer.bytes);
    return IOStatus::OK();
  }

  IOStatus Prefetch(uint64_t offset, size_t bytes, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    if (file_->direct()) return IOStatus::OK();
    if (::readahead(file_->fd(), static_cast<off_t>(offset), bytes) == 0) return IOStatus::OK();
    return failed("While reading ahead in", path_, errno);
  }

  void Hint(AccessPattern pattern) override {
    if (!file_->direct() && pattern == kRandom) {
      (void)::posix_fadvise(file_->fd(), 0, 0, POSIX_FADV_RANDOM);
    }
  }

  IOStatus InvalidateCache(size_t offset, size_t bytes) override {
    if (!file_->direct()) {
      (void)::posix_fadvise(file_->fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                            POSIX_FADV_DONTNEED);
    }
    return IOStatus::OK();
  }

  bool use_direct_io() const override { return file_->direct(); }

 private:
  const std::string path_;
  const std::shared_ptr<const OpenFile> file_;
};

class TableFileSystem : public rocksdb::FileSystemWrapper {
 public:
  TableFileSystem(const std::shared_ptr<FileSystem>& target, const DiskRoom* room)
      : FileSystemWrapper(target), room_(room) {}

  const char* Name() const override { return "ingot.tables"; }

  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* /*debug*/) override {
    const bool direct = options.use_direct_reads;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    if (fd < 0) return failed("While open a file for random read:", path, errno);
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) {
      const int error = errno;
      ::close(fd);
      return failed("While looking at", path, error);
    }
    *result = std::make_unique<TableFile>(
        path, std::make_shared<OpenFile>(fd, static_cast<uint64_t>(facts.st_size), direct));
    return IOStatus::OK();
  }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(path, options, result, debug);
    if (!status.ok() || !path.ends_with(".sst")) return status;
    *result = leaving_room(for_table(std::move(*result)), path, room_);
    return status;
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* bytes,
                        IODebugContext* debug) override {
    IOStatus status = target()->GetFreeSpace(path, options, bytes, debug);
    if (status.ok() && (room_->is_ample || is_half_free(path))) *bytes = UINT64_MAX;
    return status;
  }

 private:
  static bool is_half_free(const std::string& path) {
    struct statvfs disk {};
    return statvfs(path.c_str(), &disk) == 0 && disk.f_bavail >= disk.f_blocks / 2;
  }

  const DiskRoom* const room_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_table_file_system(
    std::shared_ptr<rocksdb::FileSystem> target, const DiskRoom* room) {
  return std::make_shared<TableFileSystem>(std::move(target), room);
}

rocksdb::ReadTier read_tier(Tier tier) {
  const bool goes_to_files = tier == Tier::kDisk || NoWaitReads::current() != nullptr;
  return goes_to_files ? rocksdb::kReadAllTier : rocksdb::kBlockCacheTier;
}

bool is_wanted(const rocksdb::Status& status) {
  const NoWaitReads* const reads = NoWaitReads::current();
  return reads != nullptr && status.IsAborted() && reads->wants();
}

}  // namespace ingot::storage
