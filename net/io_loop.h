// One I/O thread: an event loop with the connections that live on it. It sleeps in the kernel
// while nothing happens.
//
// Threads: what is not marked "any thread" belongs to the loop's own thread.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "net/asio.h"
#include "net/connection.h"
#include "net/handshakes.h"
#include "net/server_state.h"
#include "net/tls.h"

namespace ingot::net {

class ConnectionImpl;

class IoLoop final : public IoThread {
 public:
  IoLoop(int index, ServerState& state);
  ~IoLoop() override;  // the thread must have been joined

  // For the server's owner: start once; begin_stop, then join.
  void start();
  // Closes the connections, each when its queued replies are sent but after `grace_ms` at the
  // latest; then the thread ends.
  void begin_stop(int grace_ms);
  void join();

  // Any thread.
  void post(std::move_only_function<void()> task) override;
  bool is_current() const override;
  SharedBytes share(SharedBytes bytes) override;
  int index() const override { return index_; }
  Executor executor() { return context_.get_executor(); }
  // Where an accepted socket came in.
  struct Origin {
    std::string unix_path;                  // empty: TCP
    std::shared_ptr<const TlsContext> tls;  // null: plain
  };
  // Makes a connection of an accepted socket.
  void adopt(Socket socket, Origin origin);
  uint64_t bytes_in() const { return bytes_in_.load(std::memory_order_relaxed); }
  uint64_t bytes_out() const { return bytes_out_.load(std::memory_order_relaxed); }
  uint64_t reads() const { return reads_.load(std::memory_order_relaxed); }
  uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }

  ServerState& state() { return state_; }
  Handshakes& handshakes() { return handshakes_; }
  // Of one read, or one write.
  void count_in(size_t bytes) {
    add(bytes_in_, bytes);
    add(reads_, 1);
  }
  void count_out(size_t bytes) {
    add(bytes_out_, bytes);
    add(writes_, 1);
  }
  // Strings with some room in them, lent to connections while they have output.
  std::string take_spare();
  void give_spare(std::string&& spare);
  // Has on_tick() called twice a second until it returns false.
  void watch(ConnectionImpl& connection) { watched_.insert(&connection); }
  // The connection is closed and told so.
  void remove(ConnectionImpl& connection);

 private:
  // One writer, so no read-modify-write is needed.
  static void add(std::atomic<uint64_t>& counter, size_t bytes) {
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  void run();
  void run_tasks();
  void welcome(Socket socket, const Origin& origin);
  void arm_tick();
  void tick();
  void stop_connections(int grace_ms);
  void close_all();

  const int index_;
  ServerState& state_;
  asio::io_context context_;
  Handshakes handshakes_;
  asio::executor_work_guard<Executor> work_;
  std::thread thread_;
  std::atomic<uint64_t> bytes_in_{0};
  std::atomic<uint64_t> bytes_out_{0};
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> writes_{0};

  std::mutex tasks_mutex_;  // guards the next two
  std::vector<std::move_only_function<void()>> tasks_;
  bool stopped_ = false;

  std::vector<std::move_only_function<void()>> running_tasks_;
  std::vector<std::shared_ptr<ConnectionImpl>> connections_;
  std::unordered_set<ConnectionImpl*> watched_;
  std::vector<std::string> spares_;
  asio::steady_timer timer_;  // the tick; the grace period once stopping
  bool tick_armed_ = false;
  bool stopping_ = false;
};

}  // namespace ingot::net
