// A server for tests whose handlers are made of functions, and what was seen of them.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/resp_writer.h"
#include "net/server.h"
#include "tests/net/test_client.h"

namespace ingot::net::test {

// PING, ECHO and PUT (whose length it answers); anything else is an error.
void answer(Connection& connection, const Command& command);

struct Behaviour {
  std::function<void(Connection&)> on_open;
  // Default: answers every command at once.
  std::function<void(Connection&, const BatchPtr&)> on_commands;
  std::function<std::shared_ptr<ArgumentSink>(std::span<const std::string_view>, uint64_t)> sink;
  std::string refusal;  // not empty: every client is refused with it
};

class TestServer {
 public:
  explicit TestServer(Behaviour behaviour, int io_threads = 1);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // Listens on 127.0.0.1.
  void serve();

  TestClient connect(int receive_buffer = 0) { return TestClient::tcp(port, receive_buffer); }
  std::vector<std::string> close_reasons();
  std::vector<std::string> log();

  const Behaviour behaviour;
  uint16_t port = 0;
  std::atomic<int> opened{0};
  std::atomic<int> closed{0};
  std::atomic<int> lost{0};
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> batches{0};
  std::atomic<int> local_peers{0};
  boost::asio::thread_pool elsewhere{1};  // for what answers from another thread, as a disk would

 private:
  class TestHandler;
  std::mutex mutex_;
  std::vector<std::string> close_reasons_;
  std::vector<std::string> log_;

 public:
  Server server;  // last: it goes first, and its threads with it
};

// Waits until it holds; fails the test after some seconds.
template <typename Condition>
bool eventually(Condition&& condition, int seconds = 20) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ingot::net::test
