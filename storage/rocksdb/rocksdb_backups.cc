// Backups by RocksDB's backup engine, from databases that are opened for reading alone.
#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/backup_engine.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "storage/backups.h"
#include "storage/durable_file.h"
#include "storage/engine.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace ingot::storage {
namespace {

namespace fs = std::filesystem;

// Also tells whose directory it is: it is there before anything else, and stays.
constexpr const char* kLockFile = "INGOT-BACKUPS";
constexpr std::chrono::milliseconds kLockWait{2000};

Status cannot(std::string_view what, const std::string& path, int error) {
  return {Status::Code::kIo, fmt::format("cannot {} {}: {}", what, path, std::strerror(error))};
}

Status failed_within(const std::string& what, const rocksdb::Status& status) {
  const Status why = to_status(status);
  return {why.code(), what + ": " + why.message()};
}

// RocksDB ends the process where the lists of two backups tell different checksums of a file that
// both have, which one flipped bit is enough for.
Status compare_lists(const std::string& directory) {
  struct Listed {
    std::string checksum;
    std::string list;
  };
  std::map<std::string, Listed> files;
  std::error_code error;
  for (fs::directory_iterator it(directory + "/meta", error), end; !error && it != end;
       it.increment(error)) {
    const std::string list = it->path().string();
    if (it->path().has_extension()) continue;  // of a backup that was not finished
    std::string content;
    if (Status status = read_file(list, &content); !status.ok()) return status;
    std::istringstream lines(content);
    for (std::string line; std::getline(lines, line);) {
      const size_t name_end = line.find(' ');
      if (name_end == line.npos) continue;
      const std::string checksum = line.substr(name_end);
      const auto [at, is_new] =
          files.try_emplace(line.substr(0, name_end), Listed{.checksum = checksum, .list = list});
      if (!is_new && at->second.checksum != checksum) {
        return {Status::Code::kCorruption,
                fmt::format("{} or {} is damaged, and no backup can be read before one of them is "
                            "moved away",
                            at->second.list, list)};
      }
    }
  }
  return {};
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A database that is read and never changed, whatever it was written with.
class ReadOnlyDatabase {
 public:
  rocksdb::Status open(const std::string& path, rocksdb::Env* env) {
    rocksdb::Options options;
    options.env = env;
    options.max_open_files = 256;
    options.skip_stats_update_on_db_open = true;
    std::vector<std::string> names;
    rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, path, &names);
    if (!status.ok()) return status;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, options);
    rocksdb::DB* raw = nullptr;
    status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles_, &raw);
    db_.reset(raw);
    return status;
  }
  ~ReadOnlyDatabase() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) delete handle;
  }
  rocksdb::DB* get() const { return db_.get(); }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

class RocksdbBackups : public Backups {
 public:
  static OpenResult open(const std::string& directory, Access access);

  std::vector<Backup> list() const override;
  std::vector<uint32_t> damaged() const override;
  Status create(const std::string& data, Backup* made) override;
  Status verify(uint32_t id) const override;
  Status restore(uint32_t id, const std::string& target) const override;
  Status purge(uint32_t keep) override;

 private:
  RocksdbBackups() = default;
  Status lock(const std::string& directory, Access access);
  // What reads: of the engine that changes, or of the other one.
  const rocksdb::BackupEngineReadOnlyBase& reader() const {
    if (changing_ != nullptr) return *changing_;
    return *reading_;
  }

  Descriptor lock_;
  // One of them:
  std::unique_ptr<rocksdb::BackupEngine> changing_;
  std::unique_ptr<rocksdb::BackupEngineReadOnly> reading_;
};

Status RocksdbBackups::lock(const std::string& directory, Access access) {
  const std::string path = directory + "/" + kLockFile;
  const bool changes = access == Access::kChange;
  std::error_code error;
  const bool is_new = !fs::exists(path, error);
  if (error) return cannot("read", path, error.value());
  if (is_new) {
    const bool is_free = !fs::exists(directory, error) || fs::is_empty(directory, error);
    if (!changes || !is_free || error) {
      return {Status::Code::kInvalid, fmt::format("there are no backups in {}", directory)};
    }
    fs::create_directories(directory, error);
    if (error) return cannot("create", directory, error.value());
  }
  lock_ =
      Descriptor(::open(path.c_str(), changes ? O_RDWR | O_CREAT | O_CLOEXEC : O_CLOEXEC, 0644));
  if (lock_.get() < 0) return cannot("open", path, errno);
  if (is_new) {
    const std::string parent = fs::absolute(directory + "/..").lexically_normal().string();
    if (Status status = sync_directory(directory); !status.ok()) return status;
    if (Status status = sync_directory(parent); !status.ok()) return status;
  }
  // Somebody's list() is over in a moment.
  for (const auto end = std::chrono::steady_clock::now() + kLockWait;;) {
    if (flock(lock_.get(), (changes ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK) return cannot("lock", path, errno);
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(kLockWait / 100);
  }
  return {Status::Code::kBusy, fmt::format("another process is at work in {}", directory)};
}

Backups::OpenResult RocksdbBackups::open(const std::string& directory, Access access) {
  std::unique_ptr<RocksdbBackups> made(new RocksdbBackups);
  if (Status status = made->lock(directory, access); !status.ok()) return {nullptr, status};
  if (Status status = compare_lists(directory); !status.ok()) return {nullptr, status};
  const rocksdb::BackupEngineOptions options(
      fs::absolute(directory));  // VerifyChecksum() wants that
  rocksdb::IOStatus status;
  if (access == Access::kChange) {
    rocksdb::BackupEngine* raw = nullptr;
    status = rocksdb::BackupEngine::Open(options, rocksdb::Env::Default(), &raw);
    made->changing_.reset(raw);
  } else {
    rocksdb::BackupEngineReadOnly* raw = nullptr;
    status = rocksdb::BackupEngineReadOnly::Open(options, rocksdb::Env::Default(), &raw);
    made->reading_.reset(raw);
  }
  if (!status.ok()) return {nullptr, failed_within("cannot read " + directory, status)};
  return {std::move(made), Status()};
}

std::vector<Backups::Backup> RocksdbBackups::list() const {
  std::vector<rocksdb::BackupInfo> found;
  reader().GetBackupInfo(&found);
  std::vector<Backup> backups;
  for (const rocksdb::BackupInfo& backup : found) {
    backups.push_back({.id = backup.backup_id,
                       .made_s = backup.timestamp,
                       .bytes = backup.size,
                       .files = backup.number_files});
  }
  return backups;
}

std::vector<uint32_t> RocksdbBackups::damaged() const {
  std::vector<rocksdb::BackupID> ids;
  reader().GetCorruptedBackups(&ids);
  return ids;
}

Status RocksdbBackups::create(const std::string& data, Backup* made) {
  // By this name it is the same directory, also when another one has taken its path.
  const Descriptor directory(::open(data.c_str(), O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return cannot("open", data, errno);
  const std::string path = fmt::format("/proc/self/fd/{}", directory.get());
  std::string engine;
  (void)read_file(path + "/ENGINE", &engine);
  rocksdb::Status status = rocksdb::Status::NotFound("there are no data of RocksDB");
  if (ReadOnlyDatabase database; engine == "rocksdb") {
    status = database.open(path, rocksdb::Env::Default());
    if (status.ok()) status = changing_->CreateNewBackup(database.get());
  }
  // Logs that were gone before the copying began are missed by nobody.
  struct stat opened {};
  struct stat named {};
  const bool is_there = fstat(directory.get(), &opened) == 0 && stat(data.c_str(), &named) == 0 &&
                        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  if (status.ok() && is_there) {
    *made = list().back();
    return {};
  }
  if (status.ok()) {
    changing_->DeleteBackup(list().back().id).PermitUncheckedError();
  }
  changing_->GarbageCollect().PermitUncheckedError();  // what it has copied takes space
  if (!is_there) {
    return {Status::Code::kBusy, fmt::format("{} was replaced while it was copied", data)};
  }
  if (engine != "rocksdb") {
    return {Status::Code::kInvalid, fmt::format("there are no data of RocksDB in {}", data)};
  }
  return failed_within("cannot back up " + data, status);
}

Status RocksdbBackups::verify(uint32_t id) const {
  const std::string what = fmt::format("backup {}", id);
  if (rocksdb::Status status = reader().VerifyBackup(id, /*verify_with_checksum=*/true);
      !status.ok()) {
    return failed_within(what, status);
  }
  // A file may be just as it was in the server's directory, and have been damaged there.
  rocksdb::BackupInfo info;
  if (rocksdb::Status status = reader().GetBackupInfo(id, &info, /*include_file_details=*/true);
      !status.ok()) {
    return failed_within(what, status);
  }
  ReadOnlyDatabase database;
  rocksdb::Status status = database.open(info.name_for_open, info.env_for_open.get());
  if (status.ok()) status = database.get()->VerifyChecksum();
  return status.ok() ? Status() : failed_within(what, status);
}

Status RocksdbBackups::restore(uint32_t id, const std::string& target) const {
  std::error_code error;
  if (!fs::create_directories(target, error)) return cannot("create", target, error.value());
  if (rocksdb::Status status = reader().RestoreDBFromBackup(id, target, target); !status.ok()) {
    return failed_within(fmt::format("cannot restore backup {}", id), status);
  }
  return claim_directory("rocksdb", target);
}

Status RocksdbBackups::purge(uint32_t keep) {
  return to_status(changing_->PurgeOldBackups(keep));
}

}  // namespace

Backups::OpenResult Backups::open(const std::string& directory, Access access) {
  return RocksdbBackups::open(directory, access);
}

}  // namespace ingot::storage
