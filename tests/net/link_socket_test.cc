// The socket of a link: what comes is read as it comes, and others can end a wait.
#include "net/link_socket.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

constexpr int64_t kLinkAmpleMs = 20'000;
constexpr int64_t kLinkShortMs = 100;

template <typename Operation>
bool link_ends_soon(Operation&& operation) {
  const auto start = std::chrono::steady_clock::now();
  operation();
  return std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
}

TEST_CASE("what comes is read as it comes", "[link socket]") {
  TestServer server({});
  server.serve();
  LinkSocket client;
  REQUIRE(client.connect("127.0.0.1", server.port, kLinkAmpleMs) == LinkSocket::Reached::kYes);
  std::array<char, 3> room;
  size_t bytes = 0;
  CHECK(client.read_some(room, &bytes, kLinkShortMs) == LinkSocket::Got::kNothing);
  REQUIRE(client.send("PING\r\nPING\r\n", kLinkAmpleMs));
  std::string line;
  REQUIRE(client.read_line(&line, kLinkAmpleMs));
  CHECK(line == "+PONG");
  std::string rest;
  while (rest.size() < 7) {
    REQUIRE(client.read_some(room, &bytes, kLinkAmpleMs) == LinkSocket::Got::kBytes);
    rest.append(room.data(), bytes);
  }
  CHECK(rest == "+PONG\r\n");
}

TEST_CASE("a wait for input is ended by others", "[link socket]") {
  TestServer server({});
  server.serve();
  LinkSocket client;
  REQUIRE(client.connect("127.0.0.1", server.port, kLinkAmpleMs) == LinkSocket::Reached::kYes);
  std::array<char, 16> room;
  size_t bytes = 0;
  const auto read = [&] { return client.read_some(room, &bytes, kLinkAmpleMs); };
  client.nudge();
  CHECK(link_ends_soon([&] { CHECK(read() == LinkSocket::Got::kNothing); }));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(kLinkShortMs));
    client.nudge();
  });
  CHECK(link_ends_soon([&] { CHECK(read() == LinkSocket::Got::kNothing); }));
  other.join();
  other = std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(kLinkShortMs));
    client.interrupt();
  });
  CHECK(link_ends_soon([&] { CHECK(read() == LinkSocket::Got::kEnd); }));
  other.join();
  CHECK_FALSE(client.send("PING\r\n", kLinkAmpleMs));
}

}  // namespace
}  // namespace ingot::net::test
