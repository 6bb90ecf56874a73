// Streamed bodies of replies: in order, without end, failing, and dropped by their client.
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "tests/net/test_server.h"

namespace ingot::net::test {
namespace {

struct BodyLog {
  std::atomic<uint64_t> produced{0};
  std::atomic<uint64_t> output_bytes_max{0};
  std::atomic<int> destroyed{0};
  std::atomic<bool> expired{false};
};

enum class Ending { kWhole, kBroken };

// `bytes` bytes in pieces of 256 KB, every third at once and the others from another thread.
class TestBody final : public BodySource {
 public:
  TestBody(BodyLog& log, TestServer& server, uint64_t bytes, Ending ending)
      : log_(log), server_(server), left_(bytes), ending_(ending) {}
  ~TestBody() override { ++log_.destroyed; }

  void next(IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override {
    log_.output_bytes_max =
        std::max(log_.output_bytes_max.load(), server_.server.output_bytes_total());
    std::optional<std::string> piece;
    if (left_ > 0 || ending_ == Ending::kWhole) {
      piece = std::string(std::min<uint64_t>(left_, 256 * 1024), 'b');
      left_ -= piece->size();
      log_.produced += piece->size();
    }
    if (++calls_ % 3 == 0) return done(std::move(piece));
    boost::asio::post(server_.elsewhere,
                      [&thread, piece = std::move(piece), done = std::move(done)]() mutable {
                        thread.post([piece = std::move(piece), done = std::move(done)]() mutable {
                          done(std::move(piece));
                        });
                      });
  }
  bool expired() override { return log_.expired; }

 private:
  BodyLog& log_;
  TestServer& server_;
  uint64_t left_;
  const Ending ending_;
  int calls_ = 0;
};

// One piece, and then the next is never there.
class EndlessBody final : public BodySource {
 public:
  explicit EndlessBody(BodyLog& log) : log_(log) {}
  ~EndlessBody() override { ++log_.destroyed; }
  void next(IoThread&, std::move_only_function<void(std::optional<std::string>)> done) override {
    if (!std::exchange(began_, true)) return done("one piece\r\n");
    waits_ = std::move(done);
  }
  bool is_endless() const override { return true; }

 private:
  BodyLog& log_;
  bool began_ = false;
  std::move_only_function<void(std::optional<std::string>)> waits_;
};

// BODY n and BROKEN n stream n bytes; the latter does not come to its end.
struct BodyServer {
  BodyServer()
      : server({.on_commands = [this](Connection& connection, const BatchPtr& batch) {
          for (const Command& command : batch->commands) {
            if (command.args[0] == "ENDLESS") {
              connection.send_body(std::make_unique<EndlessBody>(log));
              connection.set_idle_exempt(true);
              continue;
            }
            const bool broken = command.args[0] == "BROKEN";
            if (!broken && command.args[0] != "BODY") {
              answer(connection, command);
              continue;
            }
            RespWriter writer(connection.out(), 2);
            const uint64_t bytes = std::stoull(std::string(command.args[1]));
            writer.bulk_header(bytes);
            connection.send_body(std::make_unique<TestBody>(
                log, server, bytes, broken ? Ending::kBroken : Ending::kWhole));
            RespWriter(connection.out(), 2).bulk_end();
            if (command.args.size() > 2) connection.close_after_flush();
          }
        }}) {
    server.serve();
  }

  BodyLog log;
  TestServer server;
};

TEST_CASE("100 MB are streamed without being held", "[body]") {
  BodyServer body;
  auto client = body.server.connect();
  client.send("PING\r\nBODY 100000000\r\nPING\r\nBODY 0\r\nPING\r\n");
  CHECK(client.receive_line() == "+PONG");
  CHECK(client.receive_line() == "$100000000");
  uint64_t wrong = 0;
  for (int i = 0; i < 100; ++i)
    wrong += client.receive(1'000'000) == std::string(1'000'000, 'b') ? 0 : 1;
  CHECK(wrong == 0);
  CHECK(client.receive_line() == "");
  CHECK(client.receive_line() == "+PONG");
  CHECK(client.receive_line() == "$0");
  CHECK(client.receive_line() == "");
  CHECK(client.receive_line() == "+PONG");
  CHECK(body.log.output_bytes_max < 1'000'000);
  CHECK(eventually([&] { return body.log.destroyed == 2; }));
}

TEST_CASE("beside an endless body commands are read, and a client that hangs up is closed",
          "[body]") {
  BodyServer body;
  {
    auto client = body.server.connect();
    client.send("ENDLESS\r\n");
    CHECK(client.receive_line() == "one piece");
    client.send("PING\r\n");
    CHECK(eventually([&] { return body.server.commands == 2; }));
    CHECK(body.log.destroyed == 0);
  }
  CHECK(eventually([&] { return body.log.destroyed == 1; }));
}

TEST_CASE("a body is produced no faster than it is read", "[body]") {
  BodyServer body;
  auto client = body.server.connect(16 * 1024);
  client.send("BODY 100000000\r\nPING\r\n");
  CHECK(client.receive_line() == "$100000000");
  uint64_t before = 0;
  CHECK(eventually([&] {  // until the socket is full
    const uint64_t now = body.log.produced;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return std::exchange(before, now) == now && now > 0;
  }));
  CHECK(body.log.produced < 20'000'000);
  CHECK(body.server.commands == 2);
  // Nor are further commands read meanwhile.
  client.send("PING\r\n");
  auto other = body.server.connect();
  CHECK(other.ask("PING\r\n", 7) == "+PONG\r\n");
  CHECK(body.server.commands == 3);
  client.close();
  CHECK(eventually([&] { return body.server.closed == 1 && body.log.destroyed == 1; }));
}

TEST_CASE("a body that fails cuts the connection", "[body]") {
  BodyServer body;
  auto client = body.server.connect();
  client.send("BROKEN 1000000\r\nPING\r\n");
  CHECK(client.receive_line() == "$1000000");
  CHECK((client.receive_all() == std::string(1'000'000, 'b')));
  REQUIRE(eventually([&] { return body.server.closed == 1 && body.log.destroyed == 1; }));
  CHECK(body.server.close_reasons()[0] == "A reply could not be completed");
}

TEST_CASE("a body that waits too long for its client cuts the connection", "[body]") {
  BodyServer body;
  auto client = body.server.connect(16 * 1024);
  client.send("BODY 100000000\r\n");
  CHECK(client.receive_line() == "$100000000");
  body.log.expired = true;
  REQUIRE(eventually([&] { return body.server.closed == 1 && body.log.destroyed == 1; }));
  CHECK(body.server.close_reasons()[0] == "A reply was not read in time");
}

TEST_CASE("close_after_flush and half-closed clients wait for bodies", "[body]") {
  BodyServer body;
  auto client = body.server.connect();
  client.send("BODY 5000000 last\r\n");
  CHECK(client.receive_all().size() == 5'000'000 + 12);

  auto half = body.server.connect();
  half.send("BODY 5000000\r\n");
  half.half_close();
  CHECK(half.receive_all().size() == 5'000'000 + 12);
  CHECK(eventually([&] { return body.server.closed == 2 && body.log.destroyed == 2; }));
}

TEST_CASE("stopping in the middle of a body", "[body]") {
  BodyServer body;
  auto client = body.server.connect(16 * 1024);
  client.send("BODY 100000000\r\n");
  CHECK(client.receive_line() == "$100000000");
  body.server.server.stop(50);
  CHECK(body.server.closed == 1);
  CHECK(body.log.destroyed == 1);
}

}  // namespace
}  // namespace ingot::net::test
