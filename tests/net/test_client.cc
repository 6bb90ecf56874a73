// The tests' client socket, with a time limit on every read and write.
#include "tests/net/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

namespace ingot::net::test {
namespace {

constexpr int kPatienceSeconds = 20;

// Not Catch's macros: clients are used on several threads.
void require(bool condition, const char* what) {
  if (!condition) throw std::system_error(errno, std::generic_category(), what);
}

int connected(int family, const sockaddr* address, socklen_t size, int receive_buffer) {
  const int fd = socket(family, SOCK_STREAM, 0);
  require(fd >= 0, "socket");
  if (receive_buffer > 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  require(connect(fd, address, size) == 0, "connect");
  return fd;
}

}  // namespace

TestClient::TestClient(int fd) : fd_(fd) {}

TestClient::TestClient(TestClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

TestClient::~TestClient() {
  close();
}

TestClient TestClient::tcp(uint16_t port, int receive_buffer) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TestClient client(
      connected(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof(address), receive_buffer));
  const int on = 1;
  setsockopt(client.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return client;
}

TestClient TestClient::tcp6(uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return TestClient(connected(AF_INET6, reinterpret_cast<sockaddr*>(&address), sizeof(address), 0));
}

TestClient TestClient::unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  require(path.size() < sizeof(address.sun_path), "path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return TestClient(connected(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof(address), 0));
}

void TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    require(sent > 0, "send");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

size_t TestClient::send_some(std::string_view bytes) {
  size_t total = 0;
  pollfd state{.fd = fd_, .events = POLLOUT, .revents = 0};
  while (total < bytes.size() && poll(&state, 1, 200) == 1) {
    const ssize_t sent =
        ::send(fd_, bytes.data() + total, bytes.size() - total, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) break;
    total += static_cast<size_t>(sent);
  }
  return total;
}

std::string TestClient::receive(size_t bytes) {
  std::string result(bytes, '\0');
  size_t received = 0;
  while (received < bytes) {
    const ssize_t n = recv(fd_, result.data() + received, bytes - received, 0);
    require(n >= 0 || errno == ECONNRESET, "recv");
    if (n <= 0) break;
    received += static_cast<size_t>(n);
  }
  result.resize(received);
  return result;
}

std::string TestClient::receive_line() {
  std::string line;
  while (!line.ends_with("\r\n")) {
    const std::string byte = receive(1);
    if (byte.empty()) return line;
    line += byte;
  }
  line.resize(line.size() - 2);
  return line;
}

std::string TestClient::receive_all() {
  std::string all;
  for (;;) {
    const std::string some = receive(64 * 1024);
    all += some;
    if (some.size() < 64 * 1024) return all;
  }
}

std::string TestClient::ask(std::string_view request, size_t reply_bytes) {
  send(request);
  return receive(reply_bytes);
}

void TestClient::half_close() {
  shutdown(fd_, SHUT_WR);
}

void TestClient::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

// Below the ports that connections are given for themselves.
uint16_t free_port() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<uint16_t>(10'000 + random() % 22'000);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    require(fd >= 0, "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (free) return port;
  }
}

std::string command(std::initializer_list<std::string_view> args) {
  std::string result = "*" + std::to_string(args.size()) + "\r\n";
  for (const std::string_view arg : args) {
    result += "$" + std::to_string(arg.size()) + "\r\n";
    result += arg;
    result += "\r\n";
  }
  return result;
}

}  // namespace ingot::net::test
