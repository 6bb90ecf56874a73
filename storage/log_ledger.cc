// Syncing logs, giving them room, and writing down how far they are synced.
#include "storage/log_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "storage/check.h"
#include "storage/codec.h"
#include "storage/durable_file.h"

namespace ingot::storage {
namespace {

constexpr std::string_view kMarkFile = "SYNCED";
// The mark is written to these places in turn, so that a torn one leaves the one before it.
constexpr std::array<uint64_t, 2> kMarkPlaces = {0, 4096};
constexpr uint64_t kChunkBytes = 1 << 20;  // room is asked for in steps of this
constexpr std::chrono::seconds kMarkInterval{1};

// log number, bytes, and both once more: a record that is half old and half new is none.
std::string encode(const SyncedMark& mark) {
  std::string record;
  append_le64(&record, mark.log);
  append_le64(&record, mark.bytes);
  append_le64(&record, mark.log ^ ~mark.bytes);
  return record;
}

// What a batch takes in a log: its own header, and one for each block of 32 KB that it touches.
uint64_t log_bytes(uint64_t batch_bytes) {
  return batch_bytes + batch_bytes / 1024 + 256;
}

}  // namespace

bool read_synced_mark(const std::string& directory, SyncedMark* mark) {
  std::ifstream file(directory + "/" + std::string(kMarkFile), std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  bool found = false;
  for (const uint64_t place : kMarkPlaces) {
    if (content.size() < place + encode({}).size()) break;
    const std::string_view record = std::string_view(content).substr(place, encode({}).size());
    const SyncedMark here = {.log = read_le64(record), .bytes = read_le64(record.substr(8))};
    if (encode(here) != record || (found && here < *mark)) continue;
    *mark = here;
    found = true;
  }
  return found;
}

Status lower_synced_mark(const std::string& directory, const SyncedMark& mark) {
  const std::string path = directory + "/" + std::string(kMarkFile);
  const std::string record = encode(mark);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0;
  for (const uint64_t place : kMarkPlaces) {
    done = done && pwrite(fd, record.data(), record.size(), static_cast<off_t>(place)) ==
                       static_cast<ssize_t>(record.size());
  }
  done = done && fdatasync(fd) == 0;
  if (fd >= 0) close(fd);
  return done ? Status() : Status(Status::Code::kIo, "cannot write " + path);
}

LogLedger::LogLedger(std::string directory) : directory_(std::move(directory)) {}

void LogLedger::begin_marking() {
  std::lock_guard lock(sync_mutex_);
  const std::string path = directory_ + "/" + std::string(kMarkFile);
  if (!read_synced_mark(directory_, &marked_)) {
    marked_ = {};
    // Without the file nothing is ever taken for unsynced, which is the safe way to be wrong.
    if (!write_durably(path, encode(marked_)).ok()) return;
  }
  mark_fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

LogLedger::~LogLedger() {
  if (mark_fd_ >= 0) close(mark_fd_);
}

bool LogLedger::is_in_directory(const std::string& path) const {
  const auto normal = [](const std::filesystem::path& p) { return p.lexically_normal(); };
  return normal(std::filesystem::path(path).parent_path() / "") ==
         normal(std::filesystem::path(directory_) / "");
}

std::shared_ptr<LogLedger::Log> LogLedger::begin(uint64_t number, Disk disk) {
  std::shared_ptr<Log> log(new Log(number, std::move(disk)));
  const auto before = logs();
  const bool unnamed = std::ranges::any_of(before, [](const auto& each) { return !each->named; });
  if (unnamed && sync_directory(directory_).ok()) {
    for (const auto& each : before) each->named = true;
  }
  std::lock_guard lock(mutex_);
  if (!logs_.empty()) take_room(*logs_.back(), *log);
  logs_.push_back(log);
  return log;
}

void LogLedger::take_room(Log& before, Log& log) {
  if (promised_ == 0) return;
  const uint64_t written = before.written;
  (void)before.disk.cut(written);
  before.allocated = written;
  if (log.disk.allocate(0, promised_).ok()) log.allocated = promised_;
}

Status LogLedger::before_append(Log& log) {
  if (log.begun) return {};
  std::lock_guard lock(sync_mutex_);
  for (const auto& each : logs()) {
    if (each.get() == &log) break;
    Status status = sync_locked(*each);
    if (status.ok() && each->ragged) status = {Status::Code::kIo, "cannot cut a torn log"};
    if (!status.ok()) {
      tear(log);
      return status;
    }
  }
  mark();
  log.begun = true;
  return {};
}

void LogLedger::tear(Log& log) {
  log.torn = true;
  log.ragged = !log.disk.cut(log.written).ok();
}

Status LogLedger::sync(Log& log) {
  std::lock_guard lock(sync_mutex_);
  Status status = sync_locked(log);
  if (status.ok()) mark();
  return status;
}

void LogLedger::end(Log& log) {
  std::lock_guard one_sync(sync_mutex_);
  log.ended = true;
  std::lock_guard lock(mutex_);
  std::erase_if(logs_, [&](const auto& each) { return each.get() == &log; });
}

Status LogLedger::sync() {
  std::lock_guard lock(sync_mutex_);
  for (const auto& log : logs()) {
    if (Status status = sync_locked(*log); !status.ok()) return status;
  }
  mark();
  return {};
}

Status LogLedger::sync_locked(Log& log) {
  const uint64_t written = log.written;
  if (log.ended || (log.synced == written && !log.ragged)) return {};
  if (!log.lost.ok()) return log.lost;
  if (log.ragged) log.ragged = !log.disk.cut(written).ok();
  Status status = log.disk.sync();
  if (status.ok() && !log.named) {
    status = sync_directory(directory_);
    log.named = status.ok();
  }
  if (!status.ok()) {
    // Not kNoSpace, whatever the reason: what was written is undecided.
    log.lost = {Status::Code::kIo, "cannot sync: " + status.message()};
    return log.lost;
  }
  log.synced = written;
  return {};
}

void LogLedger::mark() {
  if (mark_fd_ < 0) return;
  SyncedMark mark = marked_;
  for (const auto& log : logs()) {
    if (log->number < marked_.log) continue;
    mark = {.log = log->number, .bytes = log->synced};
    if (log->synced < log->written || log->ragged) break;  // those behind it do not count
  }
  if (mark.log == marked_.log && mark.bytes <= marked_.bytes) return;
  // A mark that lags, because this failed, is true still.
  const std::string record = encode(mark);
  const auto place = static_cast<off_t>(kMarkPlaces[marks_++ % kMarkPlaces.size()]);
  if (pwrite(mark_fd_, record.data(), record.size(), place) !=
      static_cast<ssize_t>(record.size())) {
    return;
  }
  marked_ = mark;
  const auto now = std::chrono::steady_clock::now();
  if (now - mark_durable_at_ < kMarkInterval) return;
  if (fdatasync(mark_fd_) == 0) mark_durable_at_ = now;
}

Status LogLedger::make_room(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!logs_.empty()) {
    Log& log = *logs_.back();
    const uint64_t end = log.written + promised_ + log_bytes(bytes);
    if (end > log.allocated) {
      const uint64_t least = end - log.allocated;
      uint64_t more = std::max(least, kChunkBytes);
      Status status = log.disk.allocate(log.allocated, more);
      if (status.code() == Status::Code::kNoSpace && more > least) {
        more = least;
        status = log.disk.allocate(log.allocated, more);
      }
      if (status.code() == Status::Code::kNoSpace) return status;
      log.allocated += more;  // or nobody can tell: then the append will
    }
  }
  promised_ += log_bytes(bytes);
  return {};
}

void LogLedger::release_room(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  INGOT_CHECK(promised_ >= log_bytes(bytes));
  promised_ -= log_bytes(bytes);
}

Status LogLedger::probe_room() {
  Status room = make_room(0);
  if (room.ok()) release_room(0);
  return room;
}

bool LogLedger::newest_is_torn() const {
  std::lock_guard lock(mutex_);
  return !logs_.empty() && logs_.back()->torn;
}

uint64_t LogLedger::newest_bytes() const {
  std::lock_guard lock(mutex_);
  return logs_.empty() ? 0 : logs_.back()->written.load();
}

std::vector<std::shared_ptr<LogLedger::Log>> LogLedger::logs() const {
  std::lock_guard lock(mutex_);
  return logs_;
}

}  // namespace ingot::storage
