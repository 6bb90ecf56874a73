// What this machine could do at most, whatever a server does with it. Prints one line of JSON:
//
//   probe loopback SECONDS BYTES   bytes a second through one TCP connection over 127.0.0.1, and
//   the time of a message
//                                  of so many bytes there and back
//   probe memory SECONDS THREADS   bytes a second that so many threads read, and copy, of memory
//   that no cache holds
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kStreamBytes = 1 << 20;   // of one send
constexpr size_t kMemoryBytes = 64 << 20;  // of each thread; larger than its share of a cache

int checked(int result, const char* what) {
  if (result == -1) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
  return result;
}

// Both ends of a TCP connection over the loopback.
std::pair<int, int> connected() {
  const int listening = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  checked(bind(listening, generic, bytes), "bind");
  checked(listen(listening, 1), "listen");
  checked(getsockname(listening, generic, &bytes), "getsockname");
  const int near = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  checked(connect(near, generic, bytes), "connect");
  const int far = checked(accept(listening, nullptr, nullptr), "accept");
  close(listening);
  const int yes = 1;
  for (const int each : {near, far}) {
    setsockopt(each, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  return {near, far};
}

// False at the end of the stream.
bool receive_all(int from, char* buffer, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = recv(from, buffer, bytes, 0);
    if (done <= 0) return false;
    buffer += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

void send_all(int to, const char* buffer, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = send(to, buffer, bytes, MSG_NOSIGNAL);
    if (done == -1) throw std::runtime_error(fmt::format("send: {}", std::strerror(errno)));
    buffer += done;
    bytes -= static_cast<size_t>(done);
  }
}

double loopback_bandwidth(Seconds seconds) {
  const auto [near, far] = connected();
  std::jthread reader([from = far] {
    std::vector<char> buffer(kStreamBytes);
    while (recv(from, buffer.data(), buffer.size(), 0) > 0) {
    }
  });
  const std::vector<char> data(kStreamBytes, 'x');
  const auto begin = Clock::now();
  double sent = 0;
  while (Clock::now() - begin < seconds) {
    send_all(near, data.data(), data.size());
    sent += static_cast<double>(data.size());
  }
  shutdown(near, SHUT_WR);
  reader.join();
  const Seconds took = Clock::now() - begin;
  close(near);
  close(far);
  return sent / took.count();
}

// The median time of a message there and back, in microseconds.
double loopback_round_trip(Seconds seconds, size_t bytes) {
  const auto [near, far] = connected();
  std::jthread echo([other = far, bytes] {
    std::vector<char> buffer(bytes);
    while (receive_all(other, buffer.data(), bytes)) send_all(other, buffer.data(), bytes);
  });
  std::vector<char> message(bytes, 'x');
  std::vector<double> times_us;
  const auto end = Clock::now() + seconds;
  while (Clock::now() < end || times_us.empty()) {
    const auto begin = Clock::now();
    send_all(near, message.data(), bytes);
    if (!receive_all(near, message.data(), bytes)) throw std::runtime_error("the echo ended");
    times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  shutdown(near, SHUT_WR);
  echo.join();
  close(near);
  close(far);
  const auto middle = times_us.begin() + static_cast<long>(times_us.size() / 2);
  std::ranges::nth_element(times_us, middle);
  return *middle;
}

// `work` handles kMemoryBytes of its own each time; bytes a second of all threads.
double memory_rate(
    Seconds seconds, unsigned threads,
    const std::function<void(std::vector<uint64_t>&, std::vector<uint64_t>&)>& work) {
  std::atomic<uint64_t> rounds = 0;
  std::latch ready(threads + 1);
  std::vector<std::jthread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      std::vector<uint64_t> from(kMemoryBytes / 8, 1), to(kMemoryBytes / 8, 2);
      ready.arrive_and_wait();
      const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
      do {
        work(from, to);
        ++rounds;
      } while (Clock::now() < end);
    });
  }
  ready.arrive_and_wait();
  const auto begin = Clock::now();
  running.clear();
  const Seconds took = Clock::now() - begin;
  return static_cast<double>(rounds) * kMemoryBytes / took.count();
}

void probe_memory(Seconds seconds, unsigned threads) {
  std::atomic<uint64_t> seen = 0;  // so that reading is not for nothing
  const double read = memory_rate(seconds, threads, [&](auto& from, auto&) {
    seen += std::accumulate(from.begin(), from.end(), uint64_t{0});
  });
  const double copied = memory_rate(seconds, threads, [&](auto& from, auto& to) {
    std::memcpy(to.data(), from.data(), kMemoryBytes);
    seen += to[static_cast<size_t>(seen) % to.size()];
  });
  fmt::print(R"({{"read_bytes_s": {:.0f}, "copy_bytes_s": {:.0f}}})"
             "\n",
             read, copied);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count == 4 ? words[1] : "";
  const Seconds seconds(count == 4 ? std::atof(words[2]) : 0);
  const long number = count == 4 ? std::atol(words[3]) : 0;
  if ((what != "loopback" && what != "memory") || seconds.count() <= 0 || number <= 0) {
    fmt::print(stderr, "usage: probe loopback SECONDS BYTES | probe memory SECONDS THREADS\n");
    return 2;
  }
  try {
    if (what == "memory") {
      probe_memory(seconds, static_cast<unsigned>(number));
    } else {
      fmt::print(R"({{"bytes_s": {:.0f}, "round_trip_us": {:.2f}}})"
                 "\n",
                 loopback_bandwidth(seconds),
                 loopback_round_trip(seconds, static_cast<size_t>(number)));
    }
  } catch (const std::exception& failed) {
    fmt::print(stderr, "probe: {}\n", failed.what());
    return 1;
  }
  return 0;
}
