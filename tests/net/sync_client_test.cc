// The blocking client: what it sends and reads, and that no peer can hold it up.
#include "net/sync_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

using Reached = SyncClient::Reached;

constexpr int64_t kAmpleMs = 20'000;
constexpr int64_t kShortMs = 100;

template <typename Operation>
bool ends_soon(Operation&& operation) {
  const auto start = std::chrono::steady_clock::now();
  operation();
  return std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
}

TEST_CASE("lines come one by one", "[sync client]") {
  TestServer server({});
  server.serve();
  SyncClient client;
  REQUIRE(client.connect("127.0.0.1", server.port, kAmpleMs) == Reached::kYes);
  REQUIRE(client.send("PING\r\nnonsense\r\nPING\r\n", kAmpleMs));
  std::string line;
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line == "+PONG");
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line.starts_with("-"));
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line == "+PONG");
}

TEST_CASE("a large argument arrives whole", "[sync client]") {
  TestServer server({});
  server.serve();
  SyncClient client;
  REQUIRE(client.connect("localhost", server.port, kAmpleMs) == Reached::kYes);
  const std::string value = std::string(30'000, '\0') + std::string(270'001, '\n');
  REQUIRE(client.send(command({"ECHO", value}), kAmpleMs));
  std::string line;
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line == "$300001");
  std::string bytes;
  REQUIRE(client.read_bytes(value.size(), &bytes, kAmpleMs));
  CHECK(bytes == value);
  REQUIRE(client.read_bytes(0, &bytes, kAmpleMs));
  CHECK(bytes.empty());
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line.empty());
  CHECK(ends_soon([&] { CHECK_FALSE(client.read_bytes(1, &bytes, kShortMs)); }));
}

TEST_CASE("a unix socket is as good", "[sync client]") {
  const std::string path = "/tmp/ingot-sync-client-" + std::to_string(getpid());
  TestServer server({});
  REQUIRE(server.server.listen({.port = 0, .unix_path = path}) == "");
  server.server.start();
  SyncClient client;
  REQUIRE(client.connect_unix(path) == Reached::kYes);
  REQUIRE(client.send("PING\r\n", kAmpleMs));
  std::string line;
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line == "+PONG");
  CHECK(SyncClient().connect_unix(path + "-not") == Reached::kNot);
  CHECK(SyncClient().connect_unix(std::string(200, 'x')) == Reached::kNot);
}

TEST_CASE("nobody there", "[sync client]") {
  CHECK(SyncClient().connect("127.0.0.1", free_port(), kAmpleMs) == Reached::kRefused);
  CHECK(SyncClient().connect("", free_port(), kAmpleMs) == Reached::kNot);
  CHECK(SyncClient().connect("no such host", 1, kAmpleMs) == Reached::kNot);
}

TEST_CASE("a peer that does not answer", "[sync client]") {
  TestServer server({.on_commands = [](Connection&, const BatchPtr&) {}});
  server.serve();
  SyncClient client;
  REQUIRE(client.connect("127.0.0.1", server.port, INT64_MAX) == Reached::kYes);
  std::string line;
  CHECK(ends_soon([&] { CHECK_FALSE(client.read_line(&line, kShortMs)); }));
  CHECK_FALSE(client.send("PING\r\n", kShortMs));
}

TEST_CASE("a peer that does not read", "[sync client]") {
  // Connections wait in the queue of a socket that nobody accepts from.
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listening, plain, size) == 0);
  REQUIRE(listen(listening, 1) == 0);
  REQUIRE(getsockname(listening, plain, &size) == 0);
  SyncClient client;
  REQUIRE(client.connect("127.0.0.1", ntohs(address.sin_port), kAmpleMs) == Reached::kYes);
  const std::string flood(64 << 20, 'x');
  CHECK(ends_soon([&] { CHECK_FALSE(client.send(flood, kShortMs)); }));
  close(listening);
}

TEST_CASE("a peer that hangs up", "[sync client]") {
  TestServer server({.refusal = "-ERR go away\r\n"});
  server.serve();
  SyncClient client;
  REQUIRE(client.connect("127.0.0.1", server.port, kAmpleMs) == Reached::kYes);
  std::string line;
  REQUIRE(client.read_line(&line, kAmpleMs));
  CHECK(line == "-ERR go away");
  CHECK_FALSE(client.read_line(&line, kAmpleMs));
}

TEST_CASE("a line without an end", "[sync client]") {
  TestServer server({.refusal = std::string(1 << 20, 'x')});
  server.serve();
  SyncClient client;
  REQUIRE(client.connect("127.0.0.1", server.port, kAmpleMs) == Reached::kYes);
  std::string line;
  CHECK_FALSE(client.read_line(&line, kAmpleMs));
}

}  // namespace
}  // namespace ingot::net::test
