// Connections in one epoll set: a pipeline goes out, its answers come in and are timed, the next
// goes out.
#include "bench/generator/worker.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace generator {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr int kEventsMax = 256;
constexpr int kPollMs = 100;    // how soon a stop is seen
constexpr int kRatePollMs = 1;  // how late a request with a rate may be

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

int connect_to(const sockaddr* address, socklen_t address_bytes) {
  const int handle = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle == -1) fail("a socket");
  if (connect(handle, address, address_bytes) != 0) fail("connecting");
  const int yes = 1;
  setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return handle;
}

// The server's answer to AUTH is a line. Throws std::runtime_error when it refuses.
void authenticate(int handle, const std::string& password) {
  const std::string request =
      fmt::format("*2\r\n$4\r\nAUTH\r\n${}\r\n{}\r\n", password.size(), password);
  if (send(handle, request.data(), request.size(), MSG_NOSIGNAL) == -1) fail("authenticating");
  std::string line;
  char next = 0;
  while (next != '\n' && recv(handle, &next, 1, 0) == 1) line += next;
  if (!line.starts_with('+'))
    throw std::runtime_error("the server answers: " + line.substr(0, line.find('\r')));
}

}  // namespace

uint64_t Shared::take(uint64_t wanted) {
  if (stop) return 0;
  if (options.requests == 0) return wanted;
  const uint64_t before = taken.fetch_add(wanted);
  return before >= options.requests ? 0 : std::min(wanted, options.requests - before);
}

Worker::Worker(Shared& shared, const sockaddr* address, socklen_t address_bytes,
               unsigned connections, uint64_t seed)
    : shared_(shared),
      usual_(shared.options.words, shared.numbers, seed),
      last_(shared.options.last_words.empty() ? shared.options.words : shared.options.last_words,
            shared.numbers, seed + 1),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      buffer_(kBufferBytes) {
  if (poll_ == -1) fail("epoll");
  const Options& options = shared.options;
  if (options.rate > 0) {
    interval_ =
        std::chrono::nanoseconds(static_cast<int64_t>(1e9 * options.connections / options.rate));
  }
  connections_.resize(connections);
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    connection.socket = connect_to(address, address_bytes);
    if (!options.password.empty()) authenticate(connection.socket, options.password);
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = i}};
    if (epoll_ctl(poll_, EPOLL_CTL_ADD, connection.socket, &event) != 0) fail("epoll");
  }
}

Worker::~Worker() {
  for (const Connection& connection : connections_) close(connection.socket);
  close(poll_);
}

bool Worker::idle() const {
  return std::ranges::all_of(connections_,
                             [](const Connection& each) { return each.in_flight == 0; });
}

void Worker::run() {
  const bool has_rate = shared_.options.rate > 0;
  const auto begin = Clock::now();
  for (size_t i = 0; i < connections_.size(); ++i) {
    // With a rate they take turns.
    connections_[i].due =
        begin + interval_ * static_cast<int64_t>(i) / static_cast<int64_t>(connections_.size());
    start(connections_[i], begin);
  }
  epoll_event events[kEventsMax];
  while (!idle() || (has_rate && !shared_.stop)) {
    const int count = epoll_wait(poll_, events, kEventsMax, has_rate ? kRatePollMs : kPollMs);
    if (count == -1 && errno != EINTR) fail("epoll");
    for (int i = 0; i < count; ++i) {
      Connection& connection = connections_[events[i].data.u64];
      if ((events[i].events & EPOLLOUT) != 0) write(connection);
      if ((events[i].events & ~EPOLLOUT) != 0) read(connection);
    }
    if (!has_rate) continue;
    for (Connection& connection : connections_) start(connection, Clock::now());
  }
}

// With a rate: how many have come, when it is time to send them.
uint64_t Worker::due_requests(Connection& connection, Clock::time_point now) const {
  if (now < connection.due) return 0;
  const auto waiting = static_cast<uint64_t>((now - connection.due) / interval_) + 1;
  const Options& options = shared_.options;
  const bool old =
      now - connection.due >= std::chrono::duration<double, std::milli>(options.batch_ms);
  return waiting >= options.pipeline || old ? std::min<uint64_t>(waiting, options.pipeline) : 0;
}

void Worker::start(Connection& connection, Clock::time_point now) {
  if (connection.in_flight > 0) return;
  const bool has_rate = interval_.count() > 0;
  const uint64_t wanted = has_rate ? due_requests(connection, now) : shared_.options.pipeline;
  const uint64_t count = wanted == 0 ? 0 : shared_.take(wanted);
  if (count == 0) return;
  connection.out.clear();
  connection.sent = 0;
  for (uint64_t i = 1; i < count; ++i) usual_.append_to(connection.out);
  last_.append_to(connection.out);
  connection.in_flight = count;
  connection.began = has_rate ? connection.due : now;
  connection.due += interval_ * static_cast<int64_t>(count);
  write(connection);
}

void Worker::write(Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const ssize_t done = send(connection.socket, connection.out.data() + connection.sent,
                              connection.out.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done == -1 && errno == EINTR) continue;
    if (done == -1 && errno == EAGAIN) return watch(connection, true);
    if (done == -1) fail("the server does not take requests");
    connection.sent += static_cast<size_t>(done);
  }
  watch(connection, false);
}

void Worker::watch(Connection& connection, bool write) {
  if (connection.wants_write == write) return;
  connection.wants_write = write;
  const auto index = static_cast<uint64_t>(&connection - connections_.data());
  epoll_event event = {.events = EPOLLIN | (write ? uint32_t{EPOLLOUT} : 0),
                       .data = {.u64 = index}};
  if (epoll_ctl(poll_, EPOLL_CTL_MOD, connection.socket, &event) != 0) fail("epoll");
}

void Worker::read(Connection& connection) {
  const ssize_t bytes = recv(connection.socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (bytes == -1 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes == -1) fail("the server does not answer");
  if (bytes == 0) throw std::runtime_error("the server has closed the connection");
  const Replies::Counts before = connection.replies.counts();
  const uint64_t replies = connection.replies.feed({buffer_.data(), static_cast<size_t>(bytes)});
  if (replies > connection.in_flight) throw std::runtime_error("more answers than questions");
  if (replies == 0) return;
  count(connection, replies, before);
  connection.in_flight -= replies;
  if (connection.replies.counts().errors > 0) {
    throw std::runtime_error("the server answers: " + connection.replies.first_error());
  }
  if (connection.in_flight == 0) start(connection, Clock::now());
}

void Worker::count(Connection& connection, uint64_t replies, const Replies::Counts& before) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (uint64_t i = 0; i < replies; ++i) {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - connection.began);
    tally_.latencies_us.add(static_cast<uint64_t>(took.count()));
    connection.began += interval_;
  }
  const Replies::Counts& after = connection.replies.counts();
  tally_.replies.all += replies;
  tally_.replies.nil += after.nil - before.nil;
}

Tally Worker::take_tally() {
  const std::lock_guard lock(mutex_);
  const Tally taken = tally_;
  tally_ = {};
  return taken;
}

}  // namespace generator
