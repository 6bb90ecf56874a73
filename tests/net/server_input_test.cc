// Commands into a server over real sockets: pipelines, fragments, errors, limits, diverted
// arguments.
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

std::string bulk(const std::string& bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
}

TEST_CASE("commands are answered in order", "[server]") {
  TestServer server({});
  server.serve();
  auto client = server.connect();
  CHECK(client.ask("PING\r\n", 7) == "+PONG\r\n");

  std::string requests;
  std::string replies;
  for (int i = 0; i < 20'000; ++i) {
    const std::string value = "value " + std::to_string(i);
    requests += command({"ECHO", value});
    replies += bulk(value);
  }
  std::thread sender([&] { client.send(requests); });
  const std::string received = client.receive(replies.size());
  sender.join();
  CHECK((received == replies));
  CHECK(server.commands == 20'001);
  CHECK(server.batches < 10'000);  // one read's commands are one batch
  CHECK(server.server.bytes_in() == 6 + requests.size());
  CHECK(eventually([&] { return server.server.bytes_out() == 7 + replies.size(); }));
  CHECK(server.server.query_bytes_total() == 0);
}

TEST_CASE("a command in single bytes", "[server]") {
  TestServer server({});
  server.serve();
  auto client = server.connect();
  for (const char c : command({"ECHO", "slow"})) client.send({&c, 1});
  CHECK(client.receive(10) == "$4\r\nslow\r\n");
  CHECK(server.commands == 1);
}

TEST_CASE("many clients on several threads", "[server]") {
  TestServer server({}, 3);
  server.serve();
  std::deque<TestClient> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(server.connect());
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) {
      clients[i].send(command({"ECHO", std::to_string(i)}));
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      const std::string expected = bulk(std::to_string(i));
      REQUIRE(clients[i].receive(expected.size()) == expected);
    }
  }
  CHECK(server.server.connections_accepted() == 60);
}

TEST_CASE("a protocol error is answered after what came before, then the client is closed",
          "[server]") {
  TestServer server({});
  server.serve();
  auto client = server.connect();
  client.send("PING\r\n*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n");
  CHECK(client.receive_all() ==
        "+PONG\r\n+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n");
  CHECK(eventually([&] { return server.closed == 1; }));
}

TEST_CASE("AUTH lifts the limits for what is behind it in the pipeline", "[server]") {
  TestServer server({.on_open = [](Connection& connection) { connection.set_authenticated(false); },
                     .on_commands =
                         [](Connection& connection, const BatchPtr& batch) {
                           for (const Command& command : batch->commands) {
                             if (command.args[0] == "AUTH") connection.set_authenticated(true);
                             answer(connection, command);
                           }
                         }});
  server.serve();
  const std::string large(20'000, 'x');
  auto client = server.connect();
  client.send("AUTH secret\r\n" + command({"ECHO", large}));
  CHECK(client.receive_line() == "-ERR unknown command 'AUTH'");
  CHECK((client.receive(bulk(large).size()) == bulk(large)));

  auto stranger = server.connect();
  stranger.send(command({"ECHO", large}).substr(0, 100));
  CHECK(stranger.receive_all() == "-ERR Protocol error: unauthenticated bulk length\r\n");
}

TEST_CASE("the query buffer limit closes without a word", "[server]") {
  TestServer server({});
  server.server.limits().query_buffer_bytes_max = 1 << 20;
  server.serve();
  auto client = server.connect();
  client.send("*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$50000000\r\n");
  const std::string piece(100'000, 'v');
  size_t sent = 0;
  while (server.closed == 0 && sent < 50'000'000) {
    const size_t n = client.send_some(piece);
    if (n == 0) break;
    sent += n;
  }
  REQUIRE(eventually([&] { return server.closed == 1; }));
  CHECK(server.close_reasons()[0] == "Closing client that reached max query buffer length");
  CHECK(client.receive_all() == "");
  CHECK(server.server.query_bytes_total() == 0);
}

TEST_CASE("a command that takes too much memory is refused, and those behind it are served",
          "[server]") {
  std::atomic<int> refused{0};
  TestServer server({.on_commands = [&](Connection& connection, const BatchPtr& batch) {
    for (const Command& command : batch->commands) {
      command.refused ? void(++refused) : answer(connection, command);
    }
  }});
  server.server.limits().command_bytes_max = 4 << 20;
  server.server.limits().query_total_bytes_max = 6 << 20;
  server.serve();
  auto client = server.connect();
  const std::string large(3 << 20, 'v');
  SECTION("one argument is larger than a command may be") {
    client.send("*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$5000000\r\n" + std::string(5'000'000, 'v') +
                "\r\nPING\r\n");
    CHECK(client.receive_line() == "+PONG");
    CHECK(refused == 1);
  }
  SECTION("all arguments together are") {
    client.send(command({"PUT", large, large}) + "PING\r\n");
    CHECK(client.receive_line() == "+PONG");
    CHECK(refused == 1);
  }
  SECTION("all clients together hold too much") {
    auto other = server.connect();
    other.send("*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$4000000\r\n" + std::string(3'500'000, 'v'));
    REQUIRE(eventually([&] { return server.server.query_bytes_total() > 3'500'000; }));
    client.send(command({"PUT", "k", large}) + command({"PUT", "k", "small"}));
    CHECK(client.receive_line() == ":5");
    CHECK(refused == 1);
  }
  CHECK(client.ask("PING\r\n", 7) == "+PONG\r\n");
}

TEST_CASE("very many clients that hold little together hold no more than their share", "[server]") {
  std::atomic<int> refused{0};
  TestServer server({.on_commands = [&](Connection& connection, const BatchPtr& batch) {
    refused += batch->commands[0].refused;
    connection.out() += "+OK\r\n";
  }});
  server.server.limits().query_total_bytes_max = 2 << 20;
  server.serve();
  constexpr int kClients = 60;
  constexpr int kBytes = 80'000;
  std::deque<TestClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(server.connect());
    clients[i].send("*2\r\n$4\r\nECHO\r\n$" + std::to_string(kBytes) + "\r\n" +
                    std::string(kBytes - 1, 'x'));
  }
  CHECK(eventually([&] { return server.server.bytes_in() > kClients * kBytes; }));
  CHECK(server.server.query_bytes_total() < 4 << 20);
  for (TestClient& client : clients) {
    client.send("x\r\n");
    CHECK(client.receive_line() == "+OK");
  }
  CHECK(refused > 0);
  CHECK(refused < kClients);
}

TEST_CASE("what a handler keeps counts as its client's input", "[server]") {
  std::atomic<bool> may_hold{true};
  TestServer server({.on_commands = [&](Connection& connection, const BatchPtr& batch) {
    connection.hold_input(batch->commands[0].args[0] == "HOLD" ? 5 << 20 : 0);
    may_hold = connection.may_hold_input(7 << 20);
    for (const Command& command : batch->commands) answer(connection, command);
  }});
  server.server.limits().query_total_bytes_max = 10 << 20;
  server.serve();
  auto client = server.connect();
  client.send("HOLD\r\n");
  client.receive_line();
  CHECK(server.server.query_bytes_total() == 5 << 20);
  CHECK(may_hold);  // its own does not stand in its way
  auto other = server.connect();
  CHECK(other.ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK_FALSE(may_hold);
  CHECK(client.ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK(server.server.query_bytes_total() == 0);
}

TEST_CASE("paused reading keeps commands back", "[server]") {
  std::atomic<Connection*> paused{nullptr};
  TestServer server({.on_commands = [&](Connection& connection, const BatchPtr& batch) {
    for (const Command& command : batch->commands) answer(connection, command);
    if (batch->commands.back().args[0] == "PAUSE") {
      connection.pause_reading();
      connection.pause_reading();
      paused = &connection;
    }
  }});
  server.serve();
  auto client = server.connect();
  client.send("PAUSE\r\n");
  CHECK(client.receive_line() == "-ERR unknown command 'PAUSE'");
  client.send("PING\r\n");
  // A second client has its turn after the first one's readiness was seen.
  CHECK(server.connect().ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK(server.commands == 2);
  IoThread& thread = server.server.thread(0);
  thread.post([&] { paused.load()->resume_reading(); });  // one of two
  CHECK(server.connect().ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK(server.commands == 3);
  thread.post([&] { paused.load()->resume_reading(); });
  CHECK(client.receive(7) == "+PONG\r\n");
}

// Checks what arrives against what a seed gives, and says ready when the test lets it.
class CheckingSink final : public ArgumentSink {
 public:
  struct Seen {
    std::atomic<uint64_t> bytes{0};
    std::atomic<size_t> largest_piece{0};
    std::atomic<uint64_t> query_bytes_max{0};
    std::atomic<bool> mismatch{false};
    std::atomic<int> sinks{0};
    std::atomic<int> destroyed{0};
  };

  CheckingSink(Seen& seen, TestServer& server, const std::string& pattern, uint64_t refuse_after)
      : seen_(seen), server_(server), pattern_(pattern), refuse_after_(refuse_after) {
    ++seen_.sinks;
  }
  ~CheckingSink() override { ++seen_.destroyed; }

  void write(std::string piece, std::move_only_function<void(bool)> ready) override {
    for (size_t at = 0; at < piece.size();) {
      const size_t offset = (seen_.bytes + at) % pattern_.size();
      const size_t n = std::min(piece.size() - at, pattern_.size() - offset);
      if (piece.compare(at, n, pattern_, offset, n) != 0) seen_.mismatch = true;
      at += n;
    }
    seen_.bytes += piece.size();
    seen_.largest_piece = std::max(seen_.largest_piece.load(), piece.size());
    seen_.query_bytes_max =
        std::max(seen_.query_bytes_max.load(), server_.server.query_bytes_total() + piece.size());
    const bool ok = seen_.bytes < refuse_after_;
    if (++writes_ % 3 == 0) return ready(ok);
    boost::asio::post(
        server_.elsewhere, [&server = server_.server, ok, ready = std::move(ready)]() mutable {
          server.thread(0).post([ok, ready = std::move(ready)]() mutable { ready(ok); });
        });
  }

 private:
  Seen& seen_;
  TestServer& server_;
  const std::string& pattern_;
  const uint64_t refuse_after_;
  uint64_t writes_ = 0;
};

struct DivertingServer {
  explicit DivertingServer(uint64_t refuse_after = UINT64_MAX)
      : pattern(make_pattern()),
        server({.on_commands =
                    [this](Connection& connection, const BatchPtr& batch) {
                      for (const Command& command : batch->commands) {
                        if (command.sink) {
                          if (!command.args[command.diverted_index].empty()) seen.mismatch = true;
                          RespWriter(connection.out(), 2).integer(static_cast<int64_t>(seen.bytes));
                        } else {
                          answer(connection, command);
                        }
                      }
                    },
                .sink = [this, refuse_after](std::span<const std::string_view> args,
                                             uint64_t bytes) -> std::shared_ptr<ArgumentSink> {
                  if (args[0] != "PUT") return nullptr;
                  announced = bytes;
                  return std::make_shared<CheckingSink>(seen, server, pattern, refuse_after);
                }}) {}

  static std::string make_pattern() {
    std::mt19937_64 random(11);
    std::string pattern(999'983, '\0');
    for (char& c : pattern) c = static_cast<char>(random());
    return pattern;
  }

  void send_body(TestClient& client, uint64_t bytes) const {
    while (bytes > 0) {
      const size_t n = std::min<uint64_t>(bytes, pattern.size());
      client.send(std::string_view(pattern).substr(0, n));
      bytes -= n;
    }
  }

  const std::string pattern;
  CheckingSink::Seen seen;
  std::atomic<uint64_t> announced{0};
  TestServer server;
};

TEST_CASE("100 MB are diverted without being held", "[server][large]") {
  constexpr uint64_t kBytes = 100'000'000;
  DivertingServer server;
  server.server.serve();
  auto client = server.server.connect();
  client.send("PING\r\n*4\r\n$3\r\nPUT\r\n$1\r\nk\r\n$100000000\r\n");
  server.send_body(client, kBytes);
  client.send("\r\n$2\r\nXX\r\nPING\r\n");
  CHECK(client.receive_line() == "+PONG");
  CHECK(client.receive_line() == ":100000000");
  CHECK(client.receive_line() == "+PONG");
  CHECK(server.announced == kBytes);
  CHECK_FALSE(server.seen.mismatch);
  CHECK(server.seen.largest_piece <= kLargeArgumentBytes);
  CHECK(server.seen.query_bytes_max < 2'000'000);
  CHECK(eventually([&] { return server.seen.destroyed == 1; }));
}

TEST_CASE("a sink that refuses gets no more, and the command is delivered", "[server][large]") {
  DivertingServer server(2'000'000);
  server.server.serve();
  auto client = server.server.connect();
  client.send("*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$20000000\r\n");
  server.send_body(client, 20'000'000);
  client.send("\r\nPING\r\n");
  const std::string reply = client.receive_line();
  CHECK(std::stoull(reply.substr(1)) < 4'000'000);
  CHECK(client.receive_line() == "+PONG");
}

TEST_CASE("a client that leaves in the middle of a diverted argument", "[server][large]") {
  DivertingServer server;
  server.server.serve();
  {
    auto client = server.server.connect();
    client.send("*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$20000000\r\n");
    server.send_body(client, 5'000'000);
    CHECK(eventually([&] { return server.seen.bytes > 0; }));
  }
  CHECK(eventually([&] { return server.seen.destroyed == 1 && server.server.closed == 1; }));
  CHECK(server.server.commands == 0);
}

TEST_CASE("a large argument that nobody sinks arrives whole", "[server][large]") {
  TestServer server({});
  server.serve();
  auto client = server.connect();
  const std::string large(10'000'000, 'z');
  std::thread sender([&] { client.send(command({"ECHO", large}) + "PING\r\n"); });
  CHECK((client.receive(bulk(large).size()) == bulk(large)));
  CHECK(client.receive_line() == "+PONG");
  sender.join();
}

}  // namespace
}  // namespace ingot::net::test
