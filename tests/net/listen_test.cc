// Listening: addresses, unix sockets, moving, and Redis' words for what goes wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

// A path in a directory of its own that goes away with it.
class SocketPath {
 public:
  SocketPath() {
    std::string name = (std::filesystem::temp_directory_path() / "ingot-net-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~SocketPath() { std::filesystem::remove_all(directory_); }
  std::string path(const char* name = "socket") const { return directory_ / name; }

 private:
  std::filesystem::path directory_;
};

bool answers(TestClient client) {
  return client.ask("PING\r\n", 7) == "+PONG\r\n";
}

std::string in_use(const std::string& host, uint16_t port) {
  return "Could not create server TCP listening socket " + host + ":" + std::to_string(port) +
         ": bind: Address already in use";
}

TEST_CASE("every IPv4 and IPv6 address", "[listen]") {
  std::string peer;  // of the latest client, set before it is answered
  TestServer server({.on_open = [&](Connection& connection) { peer = connection.peer_address(); }});
  const uint16_t port = free_port();
  REQUIRE(server.server.listen({.bind = {"*", "-::*"}, .port = port}) == "");
  server.server.start();
  CHECK(answers(TestClient::tcp(port)));
  CHECK(peer.starts_with("127.0.0.1:"));
  if (std::filesystem::exists("/proc/net/if_inet6")) {
    CHECK(answers(TestClient::tcp6(port)));
    CHECK(peer.starts_with("[::1]:"));
  }
  CHECK(server.local_peers == server.opened);
}

TEST_CASE("a used port is reported, and the old one stays", "[listen]") {
  TestServer first({});
  first.serve();
  TestServer second({});
  second.serve();
  CHECK(second.server.listen({.bind = {"127.0.0.1"}, .port = first.port}) ==
        in_use("127.0.0.1", first.port));
  CHECK(second.server.listen({.bind = {"*"}, .port = first.port}) == in_use("*", first.port));
  CHECK(answers(second.connect()));
  CHECK(answers(first.connect()));
}

TEST_CASE("moving to another port", "[listen]") {
  TestServer server({});
  server.serve();
  auto old_client = server.connect();
  CHECK(answers(server.connect()));
  const uint16_t port = free_port();
  REQUIRE(server.server.listen({.bind = {"127.0.0.1"}, .port = port}) == "");
  CHECK(answers(TestClient::tcp(port)));
  CHECK(old_client.ask("PING\r\n", 7) == "+PONG\r\n");
  TestServer heir({});  // the old port is free again
  CHECK(heir.server.listen({.bind = {"127.0.0.1"}, .port = server.port}) == "");
}

TEST_CASE("other addresses on the same port", "[listen]") {
  TestServer server({});
  server.serve();
  REQUIRE(server.server.listen({.bind = {"*"}, .port = server.port}) == "");
  CHECK(answers(server.connect()));
  REQUIRE(server.server.listen({.bind = {"127.0.0.1", "127.0.0.2"}, .port = server.port}) == "");
  CHECK(answers(server.connect()));
  // Fails at the second address: what was there is taken up again.
  CHECK(server.server.listen({.bind = {"*", "240.0.0.1"}, .port = server.port}) ==
        "Could not create server TCP listening socket 240.0.0.1:" + std::to_string(server.port) +
            ": bind: Cannot assign requested address");
  CHECK(answers(server.connect()));
}

TEST_CASE("addresses that the machine does not have", "[listen]") {
  TestServer server({});
  const uint16_t port = free_port();
  const std::string tail = ":" + std::to_string(port) + ": bind: Cannot assign requested address";
  CHECK(server.server.listen({.bind = {"240.0.0.1"}, .port = port}) ==
        "Could not create server TCP listening socket 240.0.0.1" + tail);
  CHECK(server.server.listen({.bind = {"127.0.0.1", "-240.0.0.1"}, .port = port}) == "");
  CHECK(server.server.listen({.bind = {"-240.0.0.1"}, .port = free_port()}) != "");
  CHECK(server.server.listen({.bind = {"no such host"}, .port = port})
            .starts_with("Could not create server TCP listening socket no such host:"));
  server.server.start();
  CHECK(answers(TestClient::tcp(port)));
}

TEST_CASE("unix sockets", "[listen]") {
  const SocketPath place;
  const std::string path = place.path();
  std::string peer;
  TestServer server({.on_open = [&](Connection& connection) { peer = connection.peer_address(); }});
  // One that an earlier run left behind.
  {
    TestServer crashed({});
    REQUIRE(crashed.server.listen({.port = 0, .unix_path = path}) == "");
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);
  REQUIRE(server.server.listen({.port = 0, .unix_path = path, .unix_permissions = 0640}) == "");
  struct stat state {};
  REQUIRE(stat(path.c_str(), &state) == 0);
  CHECK((state.st_mode & 0777) == 0640);
  server.server.start();
  CHECK(answers(TestClient::unix_socket(path)));
  CHECK(peer == path + ":0");
  CHECK(server.local_peers == 1);

  // The path stays when only something else changes.
  const uint16_t port = free_port();
  REQUIRE(server.server.listen({.bind = {"127.0.0.1"}, .port = port, .unix_path = path}) == "");
  CHECK(answers(TestClient::unix_socket(path)));
  CHECK(answers(TestClient::tcp(port)));

  const std::string moved = place.path("moved");
  REQUIRE(server.server.listen({.port = 0, .unix_path = moved}) == "");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(answers(TestClient::unix_socket(moved)));
  server.server.stop();
  CHECK_FALSE(std::filesystem::exists(moved));
}

TEST_CASE("a file that is no socket is left alone", "[listen]") {
  const SocketPath place;
  const std::string path = place.path("precious");
  std::ofstream(path) << "data";
  TestServer server({});
  CHECK(server.server.listen({.port = 0, .unix_path = path}) ==
        "Opening Unix socket: bind: Address already in use");
  CHECK(std::filesystem::file_size(path) == 4);
  CHECK(server.server.listen({.port = 0, .unix_path = std::string(200, 'x')}) ==
        "Opening Unix socket: path too long");
}

}  // namespace
}  // namespace ingot::net::test
