// Replies out of a server: clients that read slowly or never, and the limits on them.
#include <catch2/catch.hpp>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

constexpr size_t kMegabyte = 1u << 20;

// FLOOD n: that many bytes as one bulk.
Behaviour flooding() {
  return {.on_commands = [](Connection& connection, const BatchPtr& batch) {
    for (const Command& command : batch->commands) {
      if (command.args[0] == "FLOOD") {
        RespWriter(connection.out(), 2)
            .bulk(std::string(std::stoull(std::string(command.args[1])), 'f'));
      } else {
        answer(connection, command);
      }
    }
  }};
}

std::string flood(size_t bytes) {
  return command({"FLOOD", std::to_string(bytes)});
}

TEST_CASE("a client that does not read is not read from either", "[output]") {
  TestServer server({});
  server.serve();
  auto client = server.connect(16 * 1024);
  const std::string value(1000, 'v');
  std::string requests;
  for (int i = 0; i < 60'000; ++i) requests += command({"ECHO", value});
  const size_t sent = client.send_some(requests);
  REQUIRE(sent < requests.size());
  CHECK(server.commands < 60'000);
  // What is pending, plus what one more read can add to it.
  CHECK(eventually([&] { return server.server.output_bytes_total() > 0; }));
  CHECK(server.server.output_bytes_total() < 2 * kMegabyte);

  // Once it reads, everything comes.
  std::thread sender([&] { client.send(std::string_view(requests).substr(sent)); });
  const std::string reply = "$1000\r\n" + value + "\r\n";
  size_t wrong = 0;
  for (int i = 0; i < 60'000; ++i) wrong += client.receive(reply.size()) == reply ? 0 : 1;
  sender.join();
  CHECK(wrong == 0);
  CHECK(eventually([&] { return server.server.output_bytes_total() == 0; }));
  CHECK(server.closed == 0);
}

TEST_CASE("the hard limit cuts", "[output]") {
  TestServer server(flooding());
  server.server.limits().normal_output.hard_bytes = 4 * kMegabyte;
  server.serve();
  auto reader = server.connect();
  auto sleeper = server.connect(16 * 1024);
  sleeper.send(flood(20 * kMegabyte));
  REQUIRE(eventually([&] { return server.closed == 1; }));
  CHECK(server.close_reasons()[0] == "Closed for overcoming of output buffer limits");
  CHECK(server.server.output_limit_disconnections() == 1);
  CHECK(server.server.output_bytes_total() == 0);
  CHECK(reader.ask("PING\r\n", 7) == "+PONG\r\n");
}

TEST_CASE("the soft limit cuts after its time", "[output]") {
  TestServer server(flooding());
  server.server.limits().normal_output.soft_bytes = kMegabyte;
  server.server.limits().normal_output.soft_seconds = 1;
  server.serve();
  auto sleeper = server.connect(16 * 1024);
  const auto start = std::chrono::steady_clock::now();
  sleeper.send(flood(20 * kMegabyte));
  CHECK(eventually([&] { return server.closed == 1; }));
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::seconds(1));
  CHECK(server.server.output_limit_disconnections() == 1);
}

TEST_CASE("the bound on all cuts the one that owes most", "[output]") {
  TestServer server(flooding(), 2);
  server.serve();
  auto small = server.connect(16 * 1024);
  auto large = server.connect(16 * 1024);
  small.send(flood(8 * kMegabyte));
  large.send(flood(24 * kMegabyte));
  REQUIRE(eventually([&] { return server.server.output_bytes_total() > 22 * kMegabyte; }));
  server.server.limits().output_total_bytes_max = 20 * kMegabyte;
  auto third = server.connect(16 * 1024);
  third.send(flood(6 * kMegabyte));
  CHECK(eventually([&] { return server.closed == 1; }));
  CHECK(large.receive_all().size() < 24 * kMegabyte);
  CHECK(small.receive(8 * kMegabyte).size() == 8 * kMegabyte);
  CHECK(third.receive(6 * kMegabyte).size() == 6 * kMegabyte);
  CHECK(server.server.output_limit_disconnections() == 1);
}

// SUB makes the client a listener; TELL n sends n bytes to all listeners, as one copy. One thread.
Behaviour telling() {
  auto listeners = std::make_shared<std::vector<Connection*>>();
  return {.on_commands = [listeners](Connection& connection, const BatchPtr& batch) {
    for (const Command& command : batch->commands) {
      if (command.args[0] == "SUB") {
        connection.set_listens(net::Connection::Listens::kAsSubscriber);
        listeners->push_back(&connection);
      } else if (command.args[0] == "TELL") {
        const SharedBytes bytes = connection.thread().share(
            std::make_shared<const std::string>(std::stoull(std::string(command.args[1])), 't'));
        for (Connection* listener : *listeners) {
          listener->out() += '<';
          listener->send_shared(bytes);
          listener->out() += '>';
          listener->flush();
        }
      } else {
        answer(connection, command);
        continue;
      }
      connection.out() += "+OK\r\n";
    }
  }};
}

TEST_CASE("bytes that many clients get count once, for as long as one of them is owed them",
          "[output]") {
  TestServer server(telling());
  server.serve();
  std::vector<TestClient> listeners;
  for (int i = 0; i < 10; ++i) {
    listeners.push_back(server.connect(16 * 1024));
    CHECK(listeners.back().ask("SUB\r\n", 5) == "+OK\r\n");
  }
  auto client = server.connect();
  server.server.limits().output_total_bytes_max = 16 * kMegabyte;  // of 80
  CHECK(client.ask("TELL 8000000\r\n", 5) == "+OK\r\n");
  const uint64_t owed = server.server.output_bytes_total();
  CHECK(owed >= 8'000'000);
  CHECK(owed < 8'100'000);
  const std::string told = "<" + std::string(8'000'000, 't') + ">";
  for (TestClient& listener : listeners) CHECK(listener.receive(told.size()) == told);
  CHECK(eventually([&] { return server.server.output_bytes_total() == 0; }));
}

TEST_CASE("listeners have limits of their own, and no timeout", "[output]") {
  TestServer server(telling());
  server.server.limits().normal_output.hard_bytes = kMegabyte;
  server.server.limits().subscriber_output.hard_bytes = 6 * kMegabyte;
  server.server.limits().idle_timeout_seconds = 1;
  server.serve();
  auto listener = server.connect(16 * 1024);
  CHECK(listener.ask("SUB\r\n", 5) == "+OK\r\n");
  auto client = server.connect();
  CHECK(client.ask("TELL 4000000\r\n", 5) == "+OK\r\n");
  REQUIRE(eventually([&] { return server.closed == 1; }));  // the other client, for its idleness
  CHECK(server.close_reasons() == std::vector<std::string>{"Closing idle client"});
  auto second = server.connect();
  second.send("TELL 9000000\r\n");
  REQUIRE(eventually([&] { return server.server.output_limit_disconnections() == 1; }));
}

TEST_CASE("large replies reach a reading client whole", "[output]") {
  TestServer server(flooding());
  server.serve();
  auto client = server.connect();
  client.send(flood(30 * kMegabyte) + "PING\r\n" + flood(kMegabyte) + "PING\r\n");
  CHECK(client.receive_line() == "$31457280");
  CHECK((client.receive(30 * kMegabyte) == std::string(30 * kMegabyte, 'f')));
  CHECK(client.receive_line() == "");
  CHECK(client.receive_line() == "+PONG");
  CHECK(client.receive_line() == "$1048576");
  CHECK((client.receive(kMegabyte) == std::string(kMegabyte, 'f')));
  CHECK(client.receive_line() == "");
  CHECK(client.receive_line() == "+PONG");
}

TEST_CASE("close_after_flush sends what is queued", "[output]") {
  TestServer server({.on_commands = [](Connection& connection, const BatchPtr&) {
    connection.out() += std::string(10 * kMegabyte, 'q');
    connection.close_after_flush();
    connection.out() += "end";
  }});
  server.serve();
  auto client = server.connect();
  client.send("GO\r\nmore\r\n");
  const std::string all = client.receive_all();
  CHECK(all.size() == 10 * kMegabyte + 3);
  CHECK(all.ends_with("qend"));
  CHECK(eventually([&] { return server.closed == 1; }));
}

TEST_CASE("close drops what is queued", "[output]") {
  TestServer server({.on_commands = [](Connection& connection, const BatchPtr&) {
    connection.out() += "never";
    connection.close();
    connection.out() += "ever";
    connection.flush();
  }});
  server.serve();
  auto client = server.connect();
  client.send("GO\r\n");
  CHECK(client.receive_all() == "");
  CHECK(eventually([&] { return server.closed == 1; }));
}

}  // namespace
}  // namespace ingot::net::test
