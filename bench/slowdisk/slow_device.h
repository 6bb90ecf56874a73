// How long a disk of a given speed takes for what it is asked, and what it would tell of that.
//
// Whoever has work for the disk calls begin(), does the real work meanwhile, and calls finish(),
// which returns when the disk that is meant would have answered. The disk serves in the order of
// arrival, one request each 1/IOPS; each takes `latency` at least, however idle the disk is; and
// what is longer than a page takes its transfer in addition.
//
// Writes that nobody waits for go through a page cache, as they do on a real machine: wrote() notes
// them and returns, and a thread writes them back later in large pieces, which takes its share of
// the disk; flush() waits for those of one file.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

namespace slowdisk {

struct Speed {
  std::chrono::microseconds latency{0};  // of a request on an idle disk
  double iops = 0;                       // 0: as many as there are
  double bytes_per_second = 0;           // 0: no bound
  std::chrono::microseconds fsync{0};
  std::chrono::microseconds overhead{0};  // what the way through FUSE takes already
  bool rotates = false;  // what follows the request before it on the disk costs no seek

  // What a user reads: "6600 us, 150 IOPS, ...".
  std::string text() const;
};

// hdd, sata, cloud; nothing for any other name.
std::optional<Speed> speed_of(const std::string& profile);

class SlowDevice {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kRead, kWrite };
  // What begin() hands out for finish().
  struct Request {
    Kind kind;
    size_t bytes;
    Clock::time_point arrived, due;
  };

  explicit SlowDevice(const Speed& speed);
  ~SlowDevice();
  SlowDevice(const SlowDevice&) = delete;
  SlowDevice& operator=(const SlowDevice&) = delete;

  // `file`: any number that no other file has.
  Request begin(Kind kind, uint64_t file, uint64_t offset, size_t bytes);
  // Sleeps until the request is due.
  void finish(const Request& request);

  // These bytes are in the page cache now. Waits only while there is too much of that.
  void wrote(uint64_t file, size_t bytes);
  // Writes back what the file has in the page cache, and waits for that and for the disk's own
  // cache.
  void flush(uint64_t file);
  // The file is gone: so is what nobody has written back.
  void forget(uint64_t file);

  // A line as /proc/diskstats has it, numbers only from the third field on; in its units (512
  // bytes, milliseconds).
  std::string statistics();

 private:
  struct Dirty {
    size_t bytes = 0;
    Clock::time_point since{};
  };

  Clock::duration transfer(size_t bytes) const;
  // With mutex_ held. It takes `least` at least, also without a seek.
  Request schedule(Kind kind, uint64_t file, uint64_t offset, size_t bytes, Clock::duration least);
  void count_time(Clock::time_point now);
  size_t take_dirty(uint64_t file, size_t bytes_max);
  std::optional<uint64_t> to_write_back(Clock::time_point now) const;
  void write_back();

  const Speed speed_;
  const Clock::duration slot_;

  std::mutex mutex_;  // guards what follows
  Clock::time_point free_at_{};
  uint64_t last_file_ = 0, last_end_ = 0;
  std::unordered_map<uint64_t, Dirty> dirty_;
  size_t dirty_bytes_ = 0;
  uint64_t written_back_ = 0;  // bytes so far: where the next piece goes, on a disk without holes
  bool stopping_ = false;
  std::condition_variable changed_;

  struct Total {
    uint64_t requests = 0, bytes = 0;
    Clock::duration time{};
  };
  Total reads_, writes_;
  size_t in_flight_ = 0;
  Clock::time_point counted_at_{};
  Clock::duration busy_{}, queued_{};

  std::thread writer_;
};

}  // namespace slowdisk
