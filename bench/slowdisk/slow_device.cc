// The schedule of a slow disk: slots for IOPS, a floor for latency, and a page cache that is
// written back.
#include "bench/slowdisk/slow_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace slowdisk {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr size_t kPageBytes = 4096;            // IOPS are of requests of this size
constexpr size_t kPieceBytes = 512 << 10;      // of what is written back
constexpr size_t kDirtyStartBytes = 16 << 20;  // more than that is written back at once
constexpr size_t kDirtyMaxBytes = 128 << 20;   // more than that, and writers wait
constexpr seconds kDirtyAge{5};                // older than that is written back, too

void sleep_until(SlowDevice::Clock::time_point when) {
  const auto since = std::chrono::duration_cast<nanoseconds>(when.time_since_epoch()).count();
  const timespec until = {.tv_sec = since / 1'000'000'000, .tv_nsec = since % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

int64_t in_ms(SlowDevice::Clock::duration time) {
  return std::chrono::duration_cast<milliseconds>(time).count();
}

}  // namespace

std::string Speed::text() const {
  return fmt::format("{} us, {:.0f} IOPS, {:.0f} MB/s, fsync {} us{}", latency.count(), iops,
                     bytes_per_second / 1e6, fsync.count(), rotates ? ", rotates" : "");
}

std::optional<Speed> speed_of(const std::string& profile) {
  // A disk of 7,200 turns a minute: half a turn and a short seek; a flush waits for a whole turn.
  if (profile == "hdd") {
    return Speed{.latency = microseconds(6600),
                 .iops = 150,
                 .bytes_per_second = 150e6,
                 .fsync = microseconds(8300),
                 .rotates = true};
  }
  if (profile == "sata") {
    return Speed{.latency = microseconds(90),
                 .iops = 48'000,
                 .bytes_per_second = 500e6,
                 .fsync = microseconds(1000)};
  }
  // A volume across a network with a budget that is paid for.
  if (profile == "cloud") {
    return Speed{.latency = microseconds(800),
                 .iops = 3000,
                 .bytes_per_second = 125e6,
                 .fsync = microseconds(1500)};
  }
  return {};
}

SlowDevice::SlowDevice(const Speed& speed)
    : speed_(speed),
      slot_(speed.iops > 0 ? nanoseconds(static_cast<int64_t>(1e9 / speed.iops)) : nanoseconds(0)),
      counted_at_(Clock::now()),
      writer_([this] { write_back(); }) {}

SlowDevice::~SlowDevice() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

SlowDevice::Clock::duration SlowDevice::transfer(size_t bytes) const {
  if (speed_.bytes_per_second <= 0) return {};
  return nanoseconds(
      static_cast<int64_t>(static_cast<double>(bytes) / speed_.bytes_per_second * 1e9));
}

SlowDevice::Request SlowDevice::schedule(Kind kind, uint64_t file, uint64_t offset, size_t bytes,
                                         Clock::duration least) {
  const auto now = Clock::now();
  count_time(now);
  ++in_flight_;
  const bool seeks = !speed_.rotates || file != last_file_ || offset != last_end_;
  last_file_ = file;
  last_end_ = offset + bytes;
  // The first page's transfer is in the slot; without a seek there is no slot.
  const auto moving = transfer(seeks ? std::max(bytes, kPageBytes) - kPageBytes : bytes);
  free_at_ = std::max(free_at_, now) + (seeks ? slot_ : Clock::duration{}) + moving;
  const auto latency = std::max(least, Clock::duration(seeks ? speed_.latency : Clock::duration{}));
  const auto due = std::max(free_at_, now + latency + moving);
  return {.kind = kind, .bytes = bytes, .arrived = now, .due = due - speed_.overhead};
}

SlowDevice::Request SlowDevice::begin(Kind kind, uint64_t file, uint64_t offset, size_t bytes) {
  const std::lock_guard lock(mutex_);
  return schedule(kind, file, offset, bytes, {});
}

void SlowDevice::finish(const Request& request) {
  sleep_until(request.due);
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  count_time(now);
  --in_flight_;
  Total& total = request.kind == Kind::kRead ? reads_ : writes_;
  ++total.requests;
  total.bytes += request.bytes;
  total.time += now - request.arrived;
}

// Up to now the disk had as many requests as it has.
void SlowDevice::count_time(Clock::time_point now) {
  const auto passed = now - counted_at_;
  counted_at_ = now;
  if (in_flight_ > 0) busy_ += passed;
  queued_ += passed * static_cast<int64_t>(in_flight_);
}

void SlowDevice::wrote(uint64_t file, size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return dirty_bytes_ < kDirtyMaxBytes || stopping_; });
  Dirty& dirty = dirty_[file];
  if (dirty.bytes == 0) dirty.since = Clock::now();
  dirty.bytes += bytes;
  dirty_bytes_ += bytes;
  if (dirty_bytes_ >= kDirtyStartBytes) changed_.notify_all();
}

size_t SlowDevice::take_dirty(uint64_t file, size_t bytes_max) {
  const auto found = dirty_.find(file);
  if (found == dirty_.end()) return 0;
  const size_t bytes = std::min(bytes_max, found->second.bytes);
  found->second.bytes -= bytes;
  dirty_bytes_ -= bytes;
  if (found->second.bytes == 0) dirty_.erase(found);
  changed_.notify_all();
  return bytes;
}

void SlowDevice::flush(uint64_t file) {
  std::unique_lock lock(mutex_);
  const auto found = dirty_.find(file);
  size_t left = found == dirty_.end() ? 0 : found->second.bytes;  // what comes later is not ours
  while (true) {
    const size_t bytes = take_dirty(file, std::min(left, kPieceBytes));
    left -= std::min(left, kPieceBytes);
    const bool last = left == 0;
    const auto least = last ? Clock::duration(speed_.fsync) : Clock::duration{};
    const Request request = schedule(Kind::kWrite, 0, written_back_, bytes, least);
    written_back_ += bytes;
    lock.unlock();
    finish(request);
    if (last) return;
    lock.lock();
  }
}

void SlowDevice::forget(uint64_t file) {
  const std::lock_guard lock(mutex_);
  take_dirty(file, SIZE_MAX);
}

// The file that has waited longest, when it is time.
std::optional<uint64_t> SlowDevice::to_write_back(Clock::time_point now) const {
  const auto oldest =
      std::ranges::min_element(dirty_, {}, [](const auto& entry) { return entry.second.since; });
  if (oldest == dirty_.end()) return {};
  if (dirty_bytes_ < kDirtyStartBytes && now - oldest->second.since < kDirtyAge) return {};
  return oldest->first;
}

void SlowDevice::write_back() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto file = to_write_back(Clock::now());
    if (!file) {
      changed_.wait_for(lock, milliseconds(200));
      continue;
    }
    const size_t bytes = take_dirty(*file, kPieceBytes);
    const Request request = schedule(Kind::kWrite, 0, written_back_, bytes, {});
    written_back_ += bytes;
    lock.unlock();
    finish(request);
    lock.lock();
  }
}

std::string SlowDevice::statistics() {
  const std::lock_guard lock(mutex_);
  count_time(Clock::now());
  return fmt::format("{} 0 {} {} {} 0 {} {} {} {} {}", reads_.requests, reads_.bytes / 512,
                     in_ms(reads_.time), writes_.requests, writes_.bytes / 512, in_ms(writes_.time),
                     in_flight_, in_ms(busy_), in_ms(queued_));
}

}  // namespace slowdisk
