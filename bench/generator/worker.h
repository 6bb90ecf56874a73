// One thread of the generator: its connections, what they send, and how long the answers take.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "bench/generator/histogram.h"
#include "bench/generator/replies.h"
#include "bench/generator/requests.h"

namespace generator {

struct Options {
  std::string host = "127.0.0.1", port = "6379", password;
  unsigned connections = 50, threads = 1, pipeline = 1;
  double seconds = 0;     // 0: until the requests are out
  uint64_t requests = 0;  // 0: until the time is
  double rate = 0;        // requests a second, come what may; 0: as fast as the answers come
  double batch_ms = 0;    // with a rate: how long a request waits at most for its pipeline to fill
  double report_seconds = 0;
  uint64_t report_requests = 0;
  uint64_t keys = 1, hot_keys = 1, first = 0;
  size_t value_bytes = 100;
  std::vector<std::string> words;
  std::vector<std::string> last_words;  // of each pipeline's last request; empty: the same
};

// What the threads have in common.
struct Shared {
  Shared(const Options& its_options, Numbers& its_numbers)
      : options(its_options), numbers(its_numbers) {}

  // How many of `wanted` more requests may be sent.
  uint64_t take(uint64_t wanted);

  const Options& options;
  Numbers& numbers;
  std::atomic<uint64_t> taken = 0;
  std::atomic<bool> stop = false;  // no more is sent; what was, is waited for
};

struct Tally {
  Histogram latencies_us;
  Replies::Counts replies;
};

class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  // Connects. Throws std::runtime_error when that fails.
  Worker(Shared& shared, const sockaddr* address, socklen_t address_bytes, unsigned connections,
         uint64_t seed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Until all is sent and answered. Throws std::runtime_error when the server ends, or answers an
  // error.
  void run();

  // What was counted since the last call. Any thread.
  Tally take_tally();

 private:
  struct Connection {
    int socket;
    std::string out;
    size_t sent = 0;  // bytes of out
    uint64_t in_flight = 0;
    Clock::time_point began;  // when the first of those in flight was sent, or with a rate, was due
    Clock::time_point due;    // with a rate: when the next request is
    bool wants_write = false;
    Replies replies;
  };

  void start(Connection& connection, Clock::time_point now);
  uint64_t due_requests(Connection& connection, Clock::time_point now) const;
  void write(Connection& connection);
  void watch(Connection& connection, bool write);
  void read(Connection& connection);
  void count(Connection& connection, uint64_t replies, const Replies::Counts& before);
  bool idle() const;

  Shared& shared_;
  Template usual_, last_;
  int poll_;
  Clock::duration interval_{};  // with a rate: between two requests of a connection
  std::vector<Connection> connections_;
  std::vector<char> buffer_;

  std::mutex mutex_;
  Tally tally_;  // guarded by mutex_
};

}  // namespace generator
