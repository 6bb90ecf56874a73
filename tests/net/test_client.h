// A plain blocking client socket for tests, which throws instead of hanging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::net::test {

class TestClient {
 public:
  // 127.0.0.1. `receive_buffer`: a small one makes the server's socket fill up soon.
  static TestClient tcp(uint16_t port, int receive_buffer = 0);
  static TestClient tcp6(uint16_t port);
  static TestClient unix_socket(const std::string& path);

  TestClient(TestClient&& other) noexcept;
  TestClient& operator=(TestClient&&) = delete;
  ~TestClient();

  int fd() const { return fd_; }
  void send(std::string_view bytes);
  // Sends what the socket takes within a moment; returns how much that was.
  size_t send_some(std::string_view bytes);
  std::string receive(size_t bytes);  // exactly that many, or fewer when the server closes
  std::string receive_line();         // without CR LF
  std::string receive_all();          // until the server closes
  std::string ask(std::string_view request, size_t reply_bytes);
  void half_close();
  void close();

 private:
  explicit TestClient(int fd);
  int fd_;
};

// A port of 127.0.0.1 that nothing uses.
uint16_t free_port();

// RESP encoding of a command.
std::string command(std::initializer_list<std::string_view> args);

}  // namespace ingot::net::test
