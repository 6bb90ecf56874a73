// Looking at free space before each piece that a compaction writes.
#include "storage/rocksdb/disk_room.h"

#include <sys/statvfs.h>

#include <utility>

#include "storage/rocksdb/flush_gate.h"

namespace ingot::storage {
namespace {

using rocksdb::DataVerificationInfo;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class FileLeavingRoom : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FileLeavingRoom(std::unique_ptr<FSWritableFile> file, const std::string& path,
                  const DiskRoom* room)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(path), room_(room) {}

  // The wrapper would keep it from the file below.
  void SetIOPriority(rocksdb::Env::IOPriority priority) override {
    FSWritableFileOwnerWrapper::SetIOPriority(priority);
    target()->SetIOPriority(priority);
  }

  // It allocates room ahead, and nobody hears when there is none. What is appended may have its
  // room already, so it asks for none; and this is called with each block.
  void PrepareWrite(size_t offset, size_t bytes, const IOOptions& options,
                    IODebugContext* debug) override {
    size_t ahead = 0;
    size_t times = 0;
    GetPreallocationStatus(&ahead, &times);
    if (offset + bytes <= ahead * times || has_room(bytes + ahead)) {
      target()->PrepareWrite(offset, bytes, options, debug);
    }
  }
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return may_append() ? target()->Append(data, options, debug) : no_room();
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const DataVerificationInfo& sums,
                  IODebugContext* debug) override {
    return may_append() ? target()->Append(data, options, sums, debug) : no_room();
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    return may_append() ? target()->PositionedAppend(data, offset, options, debug) : no_room();
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const DataVerificationInfo& sums, IODebugContext* debug) override {
    return may_append() ? target()->PositionedAppend(data, offset, options, sums, debug)
                        : no_room();
  }

 private:
  // RocksDB tries the compaction again each second. Until then what it wrote stays on the disk,
  // where others need the room.
  bool may_append() {
    constexpr std::chrono::seconds kBackOff{5};
    const auto now = std::chrono::steady_clock::now();
    const bool begins = !std::exchange(begun_, true);
    if (begins && on_compaction_thread() && now - room_->found_none_at.load() < kBackOff) {
      return false;
    }
    if (has_room()) return true;
    room_->found_none_at = now;
    return false;
  }
  bool has_room(size_t bytes = 0) {
    const rocksdb::Env::IOPriority priority = GetIOPriority();
    const bool is_compaction = !on_flush_thread() && (priority == rocksdb::Env::IO_LOW ||
                                                      priority == rocksdb::Env::IO_USER);
    struct statvfs disk {};
    if (!is_compaction || statvfs(path_.c_str(), &disk) != 0) return true;
    const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
    return free >= bytes + room_->reserve_bytes();
  }
  IOStatus no_room() const {
    return IOStatus::NoSpace("a compaction leaves what logs and flushes need", path_);
  }

  const std::string path_;
  const DiskRoom* const room_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<rocksdb::FSWritableFile> leaving_room(std::unique_ptr<rocksdb::FSWritableFile> file,
                                                      const std::string& path,
                                                      const DiskRoom* room) {
  return std::make_unique<FileLeavingRoom>(std::move(file), path, room);
}

}  // namespace ingot::storage
