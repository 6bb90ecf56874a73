// Syncing logs, giving them room, and writing down how far they are synced and how they are linked.
#include "storage/log_ledger.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "storage/check.h"
#include "storage/codec.h"
#include "storage/durable_file.h"

namespace ingot::storage {
namespace {

constexpr std::string_view kMarkFile = "SYNCED";
// The mark is written to these places in turn, so that a torn one leaves the one before it.
constexpr std::array<uint64_t, 2> kMarkPlaces = {0, 4096};
constexpr uint64_t kLinkPlace = 8192;
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

// Behind the mark of one who writes links, too. Earlier versions leave there what was there, and a
// link beside their marks means nothing.
std::string with_tag(const SyncedMark& mark) {
  std::string record = encode(mark);
  append_le64(&record, ~(mark.log * 0x9e3779b97f4a7c15u ^ mark.bytes));
  return record;
}

std::string encode(const LogLink& link) {
  std::string record;
  append_le64(&record, link.log);
  append_le64(&record, link.before);
  append_le64(&record, link.before_bytes);
  append_le64(&record, ~(link.log ^ link.before ^ link.before_bytes));
  return record;
}

std::string read_mark_file(const std::string& directory) {
  const std::string path = directory + "/" + std::string(kMarkFile);
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string content(kLinkPlace + encode(LogLink()).size(), '\0');
  const ssize_t bytes = fd < 0 ? -1 : pread(fd, content.data(), content.size(), 0);
  if (fd >= 0) close(fd);
  content.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  return content;
}

bool write_at(int fd, std::string_view record, uint64_t place) {
  return pwrite(fd, record.data(), record.size(), static_cast<off_t>(place)) ==
         static_cast<ssize_t>(record.size());
}

// What a batch takes in a log: its own header, and one for each block of 32 KB that it touches.
uint64_t log_bytes(uint64_t batch_bytes) {
  return batch_bytes + batch_bytes / 1024 + 256;
}

class Waiting {
 public:
  explicit Waiting(std::atomic<uint64_t>& micros) : micros_(micros) {}
  ~Waiting() {
    const auto took = std::chrono::steady_clock::now() - begun_;
    micros_ +=
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::atomic<uint64_t>& micros_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace

bool read_synced_mark(const std::string& directory, SyncedMark* mark) {
  const std::string content = read_mark_file(directory);
  bool found = false;
  for (const uint64_t place : kMarkPlaces) {
    if (content.size() < place + encode(SyncedMark()).size()) break;
    const std::string_view record =
        std::string_view(content).substr(place, encode(SyncedMark()).size());
    const SyncedMark here = {.log = read_le64(record), .bytes = read_le64(record.substr(8))};
    if (encode(here) != record || (found && here < *mark)) continue;
    *mark = here;
    found = true;
  }
  return found;
}

Status lower_synced_mark(const std::string& directory, const SyncedMark& mark) {
  const std::string path = directory + "/" + std::string(kMarkFile);
  const std::string record = with_tag(mark);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0;
  for (const uint64_t place : kMarkPlaces) {
    done = done && write_at(fd, record, place);
  }
  done = done && fdatasync(fd) == 0;
  if (fd >= 0) close(fd);
  return done ? Status() : Status(Status::Code::kIo, "cannot write " + path);
}

std::optional<LogLink> read_log_link(const std::string& directory) {
  const std::string content = read_mark_file(directory);
  const size_t bytes = encode(LogLink()).size();
  if (content.size() < kLinkPlace + bytes) return std::nullopt;
  const std::string_view record = std::string_view(content).substr(kLinkPlace, bytes);
  const LogLink link = {.log = read_le64(record),
                        .before = read_le64(record.substr(8)),
                        .before_bytes = read_le64(record.substr(16))};
  const bool is_tagged = std::ranges::any_of(kMarkPlaces, [&](uint64_t place) {
    const std::string_view there = std::string_view(content).substr(place);
    const SyncedMark mark = {.log = read_le64(there), .bytes = read_le64(there.substr(8))};
    return there.starts_with(with_tag(mark));
  });
  if (!is_tagged) return std::nullopt;
  // Torn: the log that it was written for may be there, and nobody knows what is missing before it.
  return encode(link) == record ? link : LogLink();
}

LogLedger::LogLedger(std::string directory) : directory_(std::move(directory)) {}

Status LogLedger::begin_marking() {
  std::lock_guard lock(sync_mutex_);
  const std::string path = directory_ + "/" + std::string(kMarkFile);
  const bool found = read_synced_mark(directory_, &marked_);
  if (!found) marked_ = {};
  links_ = found && read_log_link(directory_).has_value();
  if (!links_) {
    std::string content(kLinkPlace, '\0');
    for (const uint64_t place : kMarkPlaces) {
      content.replace(place, with_tag(marked_).size(), with_tag(marked_));
    }
    links_ = write_durably(path, content + encode(LogLink())).ok();
    // Without the file nothing is ever taken for unsynced, which is the safe way to be wrong.
    if (!links_ && !found) return {};
  }
  mark_fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (mark_fd_ < 0) return {Status::Code::kIo, "cannot write " + path};
  // What stood in earlier logs is on stable storage, and the one that opening has begun may have
  // bytes already.
  return mark();
}

LogLedger::~LogLedger() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  call_.notify_all();
  if (settler_.joinable()) settler_.join();
  if (mark_fd_ >= 0) close(mark_fd_);
}

bool LogLedger::is_in_directory(const std::string& path) const {
  const auto normal = [](const std::filesystem::path& p) { return p.lexically_normal(); };
  return normal(std::filesystem::path(path).parent_path() / "") ==
         normal(std::filesystem::path(directory_) / "");
}

std::shared_ptr<LogLedger::Log> LogLedger::begin(uint64_t number, Disk disk) {
  std::shared_ptr<Log> log(new Log(number, std::move(disk)));
  {
    const Waiting waiting(waited_micros_);
    (void)name(logs());
  }
  std::lock_guard lock(mutex_);
  if (!logs_.empty()) take_room(*logs_.back(), *log);
  logs_.push_back(log);
  return log;
}

Status LogLedger::name(const std::vector<std::shared_ptr<Log>>& logs) {
  if (std::ranges::all_of(logs, [](const auto& each) { return each->named.load(); })) return {};
  Status status = sync_directory(directory_);
  if (status.ok()) {
    for (const auto& each : logs) each->named = true;
  }
  return status;
}

// What the other log gives up somebody else may take at once: so it does when nothing else is left.
void LogLedger::take_room(Log& before, Log& log) {
  if (promised_ == 0) return;
  const auto take = [&] {
    if (log.disk.allocate(0, promised_).ok()) log.allocated = promised_;
  };
  take();
  const uint64_t written = before.written;
  (void)before.disk.cut(written);
  before.allocated = written;
  if (log.allocated == 0) take();
}

Status LogLedger::before_append(Log& log) {
  Status status = make_appendable(log);
  if (!status.ok()) tear(log);
  return status;
}

Status LogLedger::make_appendable(Log& log) {
  if (log.begun) return {};
  std::vector<std::shared_ptr<Log>> before = logs();
  std::erase_if(before, [&](const auto& each) { return each->number >= log.number; });
  if (!link(before, log)) {
    const Waiting waiting(waited_micros_);
    std::lock_guard lock(sync_mutex_);
    Status status;
    for (const auto& each : before) {
      if (status.ok()) status = sync_locked(*each);
      if (status.ok() && each->ragged) status = {Status::Code::kIo, "cannot cut a torn log"};
    }
    if (status.ok()) status = mark();
    if (!status.ok()) return status;
  }
  log.begun = true;
  call_settler();
  return {};
}

// False: those before it have to be synced first.
bool LogLedger::link(const std::vector<std::shared_ptr<Log>>& before, Log& log) {
  if (before.empty() || !links_) return false;
  Log& last = *before.back();
  if (last.torn || !last.named || settled_ < last.number) return false;
  last.followed = true;
  const LogLink link = {.log = log.number, .before = last.number, .before_bytes = last.written};
  return write_at(mark_fd_, encode(link), kLinkPlace);
}

void LogLedger::tear(Log& log) {
  log.torn = true;
  log.ragged = !log.disk.cut(log.written).ok();
}

Status LogLedger::sync(Log& log) {
  std::lock_guard lock(sync_mutex_);
  for (const auto& each : logs()) {
    if (each->number > log.number) break;
    if (Status status = sync_locked(*each); !status.ok()) return status;
  }
  return mark_synced();
}

void LogLedger::end(Log& log) {
  std::lock_guard one_sync(sync_mutex_);
  // What was lost of it would be taken for a hole, if its name should come back.
  if (log.followed) (void)sync_locked(log);
  if (!log.ended) bytes_ -= log.written;
  log.ended = true;
  std::lock_guard lock(mutex_);
  std::erase_if(logs_, [&](const auto& each) { return each.get() == &log; });
}

Status LogLedger::sync() {
  std::lock_guard lock(sync_mutex_);
  for (const auto& log : logs()) {
    if (Status status = sync_locked(*log); !status.ok()) return status;
  }
  return mark_synced();
}

Status LogLedger::sync_locked(Log& log) {
  const uint64_t written = log.written;
  if (log.ended || (log.synced == written && !log.ragged)) return {};
  if (!log.lost.ok()) return log.lost;
  if (log.ragged) log.ragged = !log.disk.cut(written).ok();
  Status status = log.disk.sync();
  if (status.ok() && !log.named) status = name(logs());
  if (!status.ok()) {
    // Not kNoSpace, whatever the reason: what was written is undecided.
    log.lost = {Status::Code::kIo, "cannot sync: " + status.message()};
    return log.lost;
  }
  log.synced = written;
  return {};
}

// A disk that is too full to take the mark leaves an earlier one, and no log begins behind the
// newest meanwhile. What was written is on stable storage nonetheless.
Status LogLedger::mark_synced() {
  Status status = mark();
  return status.code() == Status::Code::kNoSpace ? Status() : status;
}

Status LogLedger::mark() {
  if (mark_fd_ < 0) return {};
  SyncedMark mark = marked_;
  for (const auto& log : logs()) {
    if (log->number < marked_.log) continue;
    mark = {.log = log->number, .bytes = log->synced};
    if (log->synced < log->written || log->ragged) break;  // those behind it do not count
  }
  // One that lags within its log is true still.
  const bool is_further = mark.log > settled_;
  const auto failure = [&] {
    return is_further ? file_failure("write", directory_ + "/" + std::string(kMarkFile)) : Status();
  };
  if (marked_ < mark || mark_lost_) {
    if (!write_at(mark_fd_, with_tag(mark), kMarkPlaces[marks_ % kMarkPlaces.size()])) {
      return failure();
    }
    ++marks_;
    marked_ = mark;
    mark_lost_ = false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!is_further && now - mark_durable_at_ < kMarkInterval) return {};
  if (fdatasync(mark_fd_) != 0) {
    mark_lost_ = true;
    return failure();
  }
  mark_durable_at_ = now;
  settled_ = marked_.log;
  return {};
}

void LogLedger::call_settler() {
  if (!links_) return;
  {
    std::lock_guard lock(mutex_);
    unsettled_ = true;
    try {
      if (!settler_.joinable()) settler_ = std::thread([this] { settle(); });
    } catch (const std::system_error&) {  // no thread is to be had: the next sync does it
    }
  }
  call_.notify_all();
}

// Its failures are seen by the next sync, and by the log after next.
void LogLedger::settle() {
  pthread_setname_np(pthread_self(), "log-settler");
  std::unique_lock lock(mutex_);
  while (true) {
    call_.wait(lock, [this] { return unsettled_ || stopping_; });
    if (stopping_) return;
    unsettled_ = false;
    lock.unlock();
    {
      std::lock_guard one_sync(sync_mutex_);
      const auto all = logs();
      Status status = name(all);
      for (const auto& log : all) {
        if (status.ok() && log != all.back()) status = sync_locked(*log);
      }
      if (status.ok()) (void)mark();
    }
    lock.lock();
  }
}

Status LogLedger::make_room(uint64_t bytes) {
  if (const auto all = logs(); !all.empty() && !all.back()->torn) {
    if (Status status = make_appendable(*all.back()); !status.ok()) return status;
  }
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

bool LogLedger::lags() const {
  if (!links_) return false;
  std::lock_guard lock(mutex_);
  return !logs_.empty() && settled_ < logs_.back()->number;
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
