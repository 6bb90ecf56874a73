// Lives and ends of connections, threads and the server.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <future>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

TEST_CASE("a refused client reads why", "[life]") {
  TestServer server({.refusal = "-ERR max number of clients reached\r\n"});
  server.serve();
  auto client = server.connect();
  CHECK(client.receive_all() == "-ERR max number of clients reached\r\n");
  auto talker = server.connect();
  CHECK(talker.receive(36) == "-ERR max number of clients reached\r\n");
  CHECK(server.closed == 0);  // there was no handler
}

TEST_CASE("clients that no I/O thread takes wait in the kernel, without a descriptor", "[life]") {
  TestServer server({});
  server.serve();
  std::promise<void> go;
  server.server.thread(0).post([released = go.get_future().share()] { released.wait(); });
  std::deque<TestClient> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(server.connect());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(server.server.connections_accepted() <= 130);
  go.set_value();
  CHECK(eventually([&] { return server.opened == 300; }));
}

TEST_CASE("addresses", "[life]") {
  std::string peer;
  std::string local;
  std::atomic<bool> seen{false};
  TestServer server({.on_open = [&](Connection& connection) {
    peer = connection.peer_address();
    local = connection.local_address();
    seen = connection.fd() >= 0 && connection.thread().is_current();
  }});
  server.serve();
  auto client = server.connect();
  REQUIRE(eventually([&] { return seen.load(); }));
  CHECK(peer.starts_with("127.0.0.1:"));
  CHECK(local == "127.0.0.1:" + std::to_string(server.port));
  CHECK(server.local_peers == 1);
  client.close();
  REQUIRE(eventually([&] { return server.closed == 1; }));
  CHECK(server.close_reasons()[0] == "Client closed connection");
}

// Answers every batch from a thread of its own, when the gate opens.
struct LateServer {
  LateServer()
      : server({.on_commands = [this](Connection& connection, const BatchPtr& batch) {
          connection.set_busy(true);
          threads.emplace_back([this, &connection, batch] {
            gate.wait(false);
            connection.thread().post([&connection, batch] {
              for (const Command& command : batch->commands) answer(connection, command);
              connection.set_busy(false);
              connection.flush();
            });
          });
        }}) {
    server.serve();
  }
  ~LateServer() {
    open_gate();
    server.server.stop();
    for (auto& thread : threads) thread.join();
  }
  void open_gate() {
    gate = true;
    gate.notify_all();
  }

  std::atomic<bool> gate{false};
  std::vector<std::thread> threads;
  TestServer server;
};

TEST_CASE("TCP sockets are tuned as Redis tunes them", "[life]") {
  std::array<int, 3> options{};
  std::atomic<bool> seen{false};
  TestServer server({.on_open = [&](Connection& connection) {
    const auto option = [&](int level, int name) {
      int value = -1;
      socklen_t size = sizeof(value);
      getsockopt(connection.fd(), level, name, &value, &size);
      return value;
    };
    options = {option(IPPROTO_TCP, TCP_NODELAY), option(SOL_SOCKET, SO_KEEPALIVE),
               option(IPPROTO_TCP, TCP_KEEPIDLE)};
    seen = true;
  }});
  server.server.limits().tcp_keepalive_seconds = 123;
  server.serve();
  const auto client = server.connect();
  REQUIRE(eventually([&] { return seen.load(); }));
  CHECK(options == std::array{1, 1, 123});
}

TEST_CASE("a half-closed client gets its replies", "[life]") {
  LateServer late;
  auto client = late.server.connect();
  client.send("PING\r\nECHO last\r\n");
  client.half_close();
  REQUIRE(eventually([&] { return late.server.commands == 2; }));
  auto other = late.server.connect();  // by then the end of the first one's input was seen
  REQUIRE(eventually([&] { return late.server.opened == 2; }));
  CHECK(late.server.closed == 0);
  late.open_gate();
  CHECK(client.receive_all() == "+PONG\r\n$4\r\nlast\r\n");
  CHECK(eventually([&] { return late.server.closed == 1; }));
}

TEST_CASE("a half-closed client is closed at once when nothing is owed", "[life]") {
  TestServer server({});
  server.serve();
  auto client = server.connect();
  client.send("PING\r\n*2\r\n$4\r\nECHO\r\n");  // the second one is never completed
  client.half_close();
  CHECK(client.receive_all() == "+PONG\r\n");
  CHECK(eventually([&] { return server.closed == 1; }));
}

TEST_CASE("all that a client sent is run, though it left without its replies", "[life]") {
  Connection* paused = nullptr;
  std::atomic<bool> seen{false};
  TestServer server({.on_commands = [&](Connection& connection, const BatchPtr& batch) {
    if (!seen) {
      paused = &connection;
      connection.pause_reading();
      connection.set_busy(true);
    }
    for (const Command& each : batch->commands) answer(connection, each);
    seen = true;
  }});
  server.serve();
  auto client = server.connect();
  client.send("PING\r\n");
  REQUIRE(eventually([&] { return seen.load(); }));
  // More than one read takes, so that there is a write to a closed socket before the last.
  for (int i = 0; i < 25; ++i) client.send(command({"ECHO", std::string(4000, 'x')}));
  REQUIRE(eventually([&] {
    int unacknowledged = 0;
    return ::ioctl(client.fd(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
  }));
  client.close();  // a reset: there is a reply that it has not read
  paused->thread().post([&] { paused->resume_reading(); });
  CHECK(eventually([&] { return server.commands == 26; }));
  CHECK(eventually([&] { return server.lost == 1; }));
  CHECK(server.closed == 0);  // there is still something to be done for it
  paused->thread().post([&] { paused->set_busy(false); });
  CHECK(eventually([&] { return server.closed == 1; }));
  CHECK(server.server.output_bytes_total() == 0);
}

TEST_CASE("who stopped sending and gets no reply is taken for gone", "[life]") {
  LateServer late;
  auto client = late.server.connect();
  client.send("PING\r\n");
  client.half_close();
  CHECK(eventually([&] { return late.server.lost == 1; }));
  CHECK(late.server.closed == 0);
  late.open_gate();
  CHECK(eventually([&] { return late.server.closed == 1; }));
}

TEST_CASE("a blocked client that hangs up is noticed", "[life]") {
  const bool more_data = GENERATE(false, true);
  TestServer server({.on_commands = [](Connection& connection, const BatchPtr&) {
    connection.set_busy(true);
    connection.set_idle_exempt(true);
    connection.pause_reading();
  }});
  server.serve();
  auto client = server.connect();
  client.send("BLOCK\r\n");
  REQUIRE(eventually([&] { return server.commands == 1; }));
  if (more_data) client.send("PING\r\n");
  client.close();
  CHECK(eventually([&] { return server.closed == 1; }));
  CHECK(server.commands == 1);
}

TEST_CASE("idle clients are closed, but not those that wait", "[life]") {
  TestServer server({.on_commands = [](Connection& connection, const BatchPtr& batch) {
    const std::string_view name = batch->commands[0].args[0];
    if (name == "BUSY") connection.set_busy(true);
    if (name == "WAIT") connection.set_idle_exempt(true);
    answer(connection, batch->commands[0]);
  }});
  server.server.limits().idle_timeout_seconds = 1;
  server.serve();
  auto busy = server.connect();
  auto waiting = server.connect();
  auto idle = server.connect();
  busy.send("BUSY\r\n");
  waiting.send("WAIT\r\n");
  idle.send("PING\r\n");
  const auto start = std::chrono::steady_clock::now();
  CHECK(idle.receive_all() == "+PONG\r\n");
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::milliseconds(900));
  REQUIRE(eventually([&] { return server.closed == 1; }));
  CHECK(server.close_reasons()[0] == "Closing idle client");
  CHECK(busy.receive_line().starts_with("-ERR"));
  CHECK(busy.ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK(waiting.receive_line().starts_with("-ERR"));
  CHECK(waiting.ask("PING\r\n", 7) == "+PONG\r\n");
}

TEST_CASE("2,000 idle clients hold no buffers", "[life]") {
  TestServer server({}, 2);
  server.serve();
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  setrlimit(RLIMIT_NOFILE, &files);
  const size_t count = std::min<size_t>(2000, files.rlim_cur / 2 - 100);
  std::deque<TestClient> clients;
  for (size_t i = 0; i < count; ++i) clients.push_back(server.connect());
  for (auto& client : clients) client.send("PING\r\n");
  for (auto& client : clients) REQUIRE(client.receive(7) == "+PONG\r\n");
  CHECK(server.opened == static_cast<int>(count));
  CHECK(server.server.query_bytes_total() == 0);
  CHECK(server.server.output_bytes_total() == 0);
  clients.clear();
  CHECK(eventually([&] { return server.closed == static_cast<int>(count); }));
}

TEST_CASE("tasks run on their thread, in order", "[life]") {
  TestServer server({}, 2);
  server.serve();
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  for (int target = 0; target < 2; ++target) {
    IoThread& loop = server.server.thread(target);
    CHECK(loop.index() == target);
    CHECK_FALSE(loop.is_current());
    std::array<int, kThreads> next{};  // the loop's
    std::atomic<int> ran{0};
    std::atomic<int> misplaced{0};
    std::vector<std::thread> posters;
    for (size_t p = 0; p < kThreads; ++p) {
      posters.emplace_back([&, p] {
        for (int i = 0; i < kTasks; ++i) {
          loop.post([&, p, i] {
            if (!loop.is_current() || next[p]++ != i) ++misplaced;
            ++ran;
          });
        }
      });
    }
    for (auto& poster : posters) poster.join();
    CHECK(eventually([&] { return ran == kThreads * kTasks; }));
    CHECK(misplaced == 0);
  }
}

TEST_CASE("a task posted by a task runs later", "[life]") {
  TestServer server({});
  server.serve();
  IoThread& loop = server.server.thread(0);
  std::string order;
  std::atomic<bool> done{false};
  loop.post([&] {
    loop.post([&] {
      order += "b";
      done = true;
    });
    order += "a";
  });
  CHECK(eventually([&] { return done.load(); }));
  CHECK(order == "ab");
}

TEST_CASE("stop tells every handler, and later tasks are dropped", "[life]") {
  const int grace_ms = GENERATE(0, 100);
  TestServer server({.on_commands =
                         [](Connection& connection, const BatchPtr& batch) {
                           connection.set_busy(true);
                           for (const Command& command : batch->commands) {
                             answer(connection, command);
                           }
                         }},
                    2);
  server.serve();
  std::deque<TestClient> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(server.connect());
  for (auto& client : clients) REQUIRE(client.ask("PING\r\n", 7) == "+PONG\r\n");
  server.server.stop(grace_ms);
  CHECK(server.closed == 20);
  for (auto& client : clients) CHECK(client.receive_all() == "");
  auto token = std::make_shared<int>(1);
  bool ran = false;
  server.server.thread(0).post([token, &ran] { ran = true; });
  CHECK(token.use_count() == 1);
  CHECK_FALSE(ran);
  server.server.stop();  // idempotent
}

TEST_CASE("stop gives queued replies time to leave", "[life]") {
  constexpr size_t kBytes = 30'000'000;
  TestServer server({.on_commands = [](Connection& connection, const BatchPtr&) {
    connection.out() += std::string(kBytes, 'x');
  }});
  server.serve();
  auto client = server.connect();
  client.send("GO\r\n");
  std::thread stopper([&] {
    eventually([&] { return server.commands == 1; });
    server.server.stop(10'000);
  });
  CHECK(client.receive_all().size() == kBytes);
  stopper.join();
  CHECK(server.closed == 1);
}

TEST_CASE("out of descriptors, the server waits without spinning", "[life]") {
  TestServer server({});
  server.serve();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  const int highest = dup(0);
  tight.rlim_cur = static_cast<rlim_t>(highest) + 8;
  setrlimit(RLIMIT_NOFILE, &tight);
  std::vector<int> hogs{highest};
  for (int fd = dup(0); fd >= 0; fd = dup(0)) hogs.push_back(fd);
  close(hogs.back());  // one for the client
  hogs.pop_back();
  auto client = server.connect();
  client.send("PING\r\n");
  CHECK(eventually([&] { return !server.log().empty(); }));
  rusage used_before{};
  getrusage(RUSAGE_SELF, &used_before);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // what is measured
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  for (const int fd : hogs) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(client.receive(7) == "+PONG\r\n");
  CHECK(server.log() ==
        std::vector<std::string>{"Accepting client connection: accept: Too many open files"});
  const auto micros = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  CHECK(micros(used) - micros(used_before) < 100'000);
}

}  // namespace
}  // namespace ingot::net::test
