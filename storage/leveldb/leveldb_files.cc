// The files that LevelDB writes: logs that are watched, tables that wait for space.
#include "storage/leveldb/leveldb_files.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>

#include "storage/durable_file.h"

namespace ingot::storage {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr std::chrono::milliseconds kRetryInterval{50};
constexpr std::chrono::seconds kFlushWait{5};

// As LevelDB's own files tell of errno, which leveldb_status.cc reads again.
leveldb::Status failed(const std::string& path) {
  return leveldb::Status::IOError(path, std::strerror(errno));
}

Status to_storage(int result, const std::string& path) {
  if (result == 0) return {};
  const auto code = errno == ENOSPC ? Status::Code::kNoSpace : Status::Code::kIo;
  return {code, path + ": " + std::strerror(errno)};
}

// Writes what it can: false when the rest of `bytes` was refused, with errno.
bool write_all(Disk* disk, int fd, std::string_view* bytes) {
  while (!bytes->empty()) {
    const ssize_t written = disk->write(fd, bytes->data(), bytes->size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes->remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int Disk::create(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}
ssize_t Disk::write(int fd, const char* bytes, size_t count) {
  return ::write(fd, bytes, count);
}
int Disk::sync(int fd) {
  return fdatasync(fd);
}
int Disk::allocate(int fd, off_t offset, off_t bytes) {
  return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, bytes);
}
Status Disk::sync_directory(const std::string& path) {
  return storage::sync_directory(path);
}
uint64_t Disk::free_bytes(const std::string& path) {
  struct statvfs disk {};
  if (statvfs(path.c_str(), &disk) != 0) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}
Disk* Disk::of_machine() {
  static Disk disk;
  return &disk;
}

// A log's descriptor, which outlives LevelDB's use of it.
struct LeveldbEnv::Log {
  Log(LeveldbEnv* of, std::string at, int descriptor, uint64_t number)
      : env(of), path(std::move(at)), fd(descriptor) {
    entry = env->ledger_->begin(
        number,
        {.sync = [this] { return sync(); },
         .allocate = [this](uint64_t offset, uint64_t bytes) { return allocate(offset, bytes); },
         .cut = [this](uint64_t size) { return cut(size); }});
  }
  ~Log() {
    env->ledger_->end(*entry);
    close(fd);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Status sync() { return to_storage(env->disk_->sync(fd), path); }
  Status allocate(uint64_t offset, uint64_t bytes) {
    return to_storage(
        env->disk_->allocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)), path);
  }

  Status cut(uint64_t size) const {
    return to_storage(ftruncate(fd, static_cast<off_t>(size)), path);
  }

  LeveldbEnv* const env;
  const std::string path;
  const int fd;
  std::shared_ptr<LogLedger::Log> entry;
};

class LeveldbLog : public leveldb::WritableFile {
 public:
  explicit LeveldbLog(std::shared_ptr<LeveldbEnv::Log> log) : log_(std::move(log)) {}
  ~LeveldbLog() override { (void)Close(); }

  leveldb::Status Append(const leveldb::Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? leveldb::Status::OK() : write_buffer();
  }
  // LevelDB flushes behind every whole record.
  leveldb::Status Flush() override {
    leveldb::Status status = write_buffer();
    if (!status.ok()) return status;
    log_->env->ledger_->appended(*log_->entry, unreported_);
    unreported_ = 0;
    return status;
  }
  leveldb::Status Sync() override {
    leveldb::Status status = Flush();
    if (!status.ok()) return status;
    if (log_->env->ledger_->sync(*log_->entry).ok()) return status;
    // Not by its own words, which may be those of a full disk.
    return leveldb::Status::IOError(log_->path, "cannot sync");
  }
  // Gives back the room that it was given in advance.
  leveldb::Status Close() override {
    leveldb::Status status = Flush();
    (void)log_->cut(LogLedger::written(*log_->entry));
    return status;
  }

 private:
  leveldb::Status write_buffer() {
    if (LogLedger::torn(*log_->entry)) {
      return leveldb::Status::IOError(log_->path, std::strerror(ENOSPC));
    }
    if (buffer_.empty()) return leveldb::Status::OK();
    if (Status begun = log_->env->ledger_->before_append(*log_->entry); !begun.ok()) {
      buffer_.clear();
      const bool is_full = begun.code() == Status::Code::kNoSpace;
      return leveldb::Status::IOError(
          log_->path, is_full ? std::strerror(ENOSPC) : "cannot sync the log before it");
    }
    std::string_view rest = buffer_;
    const bool done = write_all(log_->env->disk_, log_->fd, &rest);
    const leveldb::Status status = done ? leveldb::Status::OK() : failed(log_->path);
    unreported_ += buffer_.size();
    buffer_.clear();
    if (!done) log_->env->ledger_->tear(*log_->entry);
    return status;
  }

  const std::shared_ptr<LeveldbEnv::Log> log_;
  std::string buffer_;
  uint64_t unreported_ = 0;  // written since the last whole record
};

class TableFile : public leveldb::WritableFile {
 public:
  TableFile(LeveldbEnv* env, std::string path, int fd)
      : env_(env),
        path_(std::move(path)),
        is_manifest_(std::filesystem::path(path_).filename().string().starts_with("MANIFEST")),
        fd_(fd) {}
  ~TableFile() override { (void)Close(); }

  leveldb::Status Append(const leveldb::Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? leveldb::Status::OK() : Flush();
  }
  // A manifest names other files: their names must be durable before any of it may be, so it is
  // written by Sync(), which LevelDB calls behind each change, and by nothing else.
  leveldb::Status Flush() override { return is_manifest_ ? leveldb::Status::OK() : write_buffer(); }
  leveldb::Status Sync() override {
    const std::string directory = std::filesystem::path(path_).parent_path().string();
    if (is_manifest_ && !env_->disk_->sync_directory(directory).ok()) {
      return leveldb::Status::IOError(path_, "cannot sync its directory");
    }
    if (leveldb::Status status = write_buffer(); !status.ok()) return status;
    if (env_->disk_->sync(fd_) == 0) return leveldb::Status::OK();
    // Even for lack of space: what was to be written may be gone.
    return leveldb::Status::IOError(path_, "cannot sync");
  }
  leveldb::Status Close() override {
    if (fd_ < 0) return leveldb::Status::OK();
    leveldb::Status status = Flush();
    if (close(std::exchange(fd_, -1)) != 0 && status.ok()) status = failed(path_);
    return status;
  }

 private:
  leveldb::Status write_buffer() {
    std::string_view rest = buffer_;
    while (!leaves_reserve() || !write_all(env_->disk_, fd_, &rest)) {
      if (errno != ENOSPC || !env_->wait_for_space()) return failed(path_);
    }
    buffer_.clear();
    env_->starving_ = false;
    return leveldb::Status::OK();
  }
  // With errno, as a write that finds none.
  bool leaves_reserve() {
    const uint64_t reserved = is_manifest_ ? 0 : env_->reserved_bytes_.load();
    if (reserved == 0 || env_->disk_->free_bytes(path_) >= reserved + buffer_.size()) return true;
    errno = ENOSPC;
    return false;
  }

  LeveldbEnv* const env_;
  const std::string path_;
  const bool is_manifest_;
  int fd_;
  std::string buffer_;
};

namespace {

class TableReads : public leveldb::RandomAccessFile {
 public:
  TableReads(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~TableReads() override { close(fd_); }

  leveldb::Status Read(uint64_t offset, size_t count, leveldb::Slice* result,
                       char* scratch) const override {
    size_t done = 0;
    while (done < count) {
      const ssize_t got =
          pread(fd_, scratch + done, count - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed(path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    *result = leveldb::Slice(scratch, done);
    return leveldb::Status::OK();
  }

 private:
  const std::string path_;
  const int fd_;
};

}  // namespace

LeveldbEnv::LeveldbEnv(Disk* disk, LogLedger* ledger, uint64_t reserve_bytes,
                       std::function<void()> on_hunger)
    : EnvWrapper(leveldb::Env::Default()),
      disk_(disk),
      ledger_(ledger),
      reserve_bytes_(reserve_bytes),
      on_hunger_(std::move(on_hunger)) {
  // LevelDB starts its thread with the first work, and there may be none to be had by then.
  EnvWrapper::Schedule([](void*) {}, nullptr);
}

LeveldbEnv::~LeveldbEnv() = default;

void LeveldbEnv::set_patient(bool patient) {
  {
    std::lock_guard lock(mutex_);
    patient_ = patient;
  }
  reserved_bytes_ = patient ? reserve_bytes_ : 0;
  wake_.notify_all();
}

bool LeveldbEnv::wait_for_space() {
  if (!starving_.exchange(true)) on_hunger_();
  std::unique_lock lock(mutex_);
  wake_.notify_all();
  return !wake_.wait_for(lock, kRetryInterval, [this] { return !patient_; });
}

bool LeveldbEnv::wait_for_flush() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, kFlushWait, [this] { return logs_.size() <= 1 || starving_; });
  return logs_.size() <= 1 || !starving_;
}

bool LeveldbEnv::is_flushing() const {
  std::lock_guard lock(mutex_);
  return logs_.size() > 1;
}

bool LeveldbEnv::FileExists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0 || errno != ENOENT;
}

leveldb::Status LeveldbEnv::GetChildren(const std::string& path, std::vector<std::string>* names) {
  names->clear();
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    names->push_back(at->path().filename());
  }
  return error ? leveldb::Status::IOError(path, error.message()) : leveldb::Status::OK();
}

leveldb::Status LeveldbEnv::NewRandomAccessFile(const std::string& path,
                                                leveldb::RandomAccessFile** file) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return leveldb::Status::NotFound(path, std::strerror(errno));
  if (fd < 0) return failed(path);
  *file = new TableReads(path, fd);
  return leveldb::Status::OK();
}

leveldb::Status LeveldbEnv::NewWritableFile(const std::string& path, leveldb::WritableFile** file) {
  const std::filesystem::path name(path);
  const std::string stem = name.stem().string();
  uint64_t number = 0;
  const bool is_numbered =
      std::from_chars(stem.data(), stem.data() + stem.size(), number).ec == std::errc();
  const bool is_log = is_numbered && name.extension() == ".log";
  if (is_numbered && name.extension() == ".ldb") {
    std::lock_guard lock(mutex_);
    tables_of_work_.insert(number);
  }
  int fd = disk_->create(path);
  while (fd < 0 && errno == ENOSPC && !is_log && wait_for_space()) fd = disk_->create(path);
  if (fd < 0) return failed(path);
  // LevelDB's interface is raw.
  if (!is_log) {
    *file = new TableFile(this, path, fd);
    return leveldb::Status::OK();
  }
  const auto log = std::make_shared<Log>(this, path, fd, number);
  *file = new LeveldbLog(log);
  std::lock_guard lock(mutex_);
  logs_[path] = log;
  return leveldb::Status::OK();
}

// LevelDB gives CURRENT its new content so, and removes next what only the old one needs; or, when
// this fails, the manifest that the new one names.
leveldb::Status LeveldbEnv::RenameFile(const std::string& from, const std::string& to) {
  leveldb::Status status = EnvWrapper::RenameFile(from, to);
  const std::filesystem::path path(to);
  if (!status.ok() || path.filename() != "CURRENT") return status;
  const Status synced = disk_->sync_directory(path.parent_path().string());
  if (synced.ok()) return status;
  keeps_manifests_ = true;  // nobody knows which of them the disk's CURRENT names
  return leveldb::Status::IOError(to, synced.message());
}

leveldb::Status LeveldbEnv::RemoveFile(const std::string& path) {
  if (keeps_manifests_ && std::filesystem::path(path).filename().string().starts_with("MANIFEST")) {
    return leveldb::Status::IOError(path, "kept");
  }
  {
    std::lock_guard lock(mutex_);
    logs_.erase(path);
  }
  wake_.notify_all();
  return EnvWrapper::RemoveFile(path);
}

// LevelDB schedules each step when the one before has ended.
void LeveldbEnv::Schedule(void (*work)(void*), void* argument) {
  {
    std::lock_guard lock(mutex_);
    tables_of_work_.clear();
  }
  EnvWrapper::Schedule(work, argument);
}

std::set<uint64_t> LeveldbEnv::tables_of_work() const {
  std::lock_guard lock(mutex_);
  return tables_of_work_;
}

}  // namespace ingot::storage
