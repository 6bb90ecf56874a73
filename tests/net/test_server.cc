// The tests' server and its handlers.
#include "tests/net/test_server.h"

#include <catch2/catch.hpp>
#include <utility>

namespace ingot::net::test {

class TestServer::TestHandler final : public Handler {
 public:
  TestHandler(TestServer& owner, Connection& connection) : owner_(owner), connection_(connection) {}

  void on_commands(BatchPtr batch) override {
    owner_.commands += batch->commands.size();
    ++owner_.batches;
    if (owner_.behaviour.on_commands) return owner_.behaviour.on_commands(connection_, batch);
    for (const Command& command : batch->commands) answer(connection_, command);
  }

  std::shared_ptr<ArgumentSink> argument_sink(std::span<const std::string_view> args,
                                              uint64_t bytes) override {
    return owner_.behaviour.sink ? owner_.behaviour.sink(args, bytes) : nullptr;
  }

  void on_lost() override { ++owner_.lost; }

  void on_protocol_error(std::string_view error) override {
    RespWriter(connection_.out(), 2).error(error);
    connection_.close_after_flush();
  }

  void on_close(std::string_view reason) override {
    const std::lock_guard lock(owner_.mutex_);
    owner_.close_reasons_.emplace_back(reason);
    ++owner_.closed;
  }

 private:
  TestServer& owner_;
  Connection& connection_;
};

void answer(Connection& connection, const Command& command) {
  RespWriter writer(connection.out(), 2);
  const std::string_view name = command.args[0];
  if (name == "PING") {
    writer.simple("PONG");
  } else if (name == "ECHO" && command.args.size() == 2) {
    writer.bulk(command.args[1]);
  } else if (name == "PUT" && command.args.size() == 3) {
    writer.integer(static_cast<int64_t>(command.args[2].size()));
  } else {
    writer.error("ERR unknown command '" + std::string(name) + "'");
  }
}

TestServer::TestServer(Behaviour with, int io_threads)
    : behaviour(std::move(with)),
      server({.io_threads = io_threads,
              .welcome = [this](Connection& connection, bool peer_is_local) -> Welcome {
                ++opened;
                if (peer_is_local) ++local_peers;
                if (!behaviour.refusal.empty()) return behaviour.refusal;
                if (behaviour.on_open) behaviour.on_open(connection);
                return std::make_shared<TestHandler>(*this, connection);
              },
              .on_log =
                  [this](const std::string& line) {
                    const std::lock_guard lock(mutex_);
                    log_.push_back(line);
                  }}) {}

// What is under way elsewhere may still post to the I/O threads.
TestServer::~TestServer() {
  server.stop();
  elsewhere.join();
}

void TestServer::serve() {
  std::string error = "never tried";
  for (int attempt = 0; attempt < 10 && !error.empty(); ++attempt) {  // somebody may be quicker
    port = free_port();
    error = server.listen({.bind = {"127.0.0.1"}, .port = port});
  }
  REQUIRE(error == "");
  server.start();
}

std::vector<std::string> TestServer::close_reasons() {
  const std::lock_guard lock(mutex_);
  return close_reasons_;
}

std::vector<std::string> TestServer::log() {
  const std::lock_guard lock(mutex_);
  return log_;
}

}  // namespace ingot::net::test
