// Bad weather in process: clients that leave in the middle of something, commits and walks that
// take long, and that nobody else is held up or loses anything by it.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "storage/memory/memory_engine.h"
#include "tests/src/gated_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using test::InProcess;
using test::InProcessClient;

namespace {

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// A server whose engine is gated.
struct Gated {
  explicit Gated(int readers = 2)
      : memory(new storage::MemoryEngine({})),
        engine(new storage::GatedEngine(std::unique_ptr<storage::Engine>(memory))),
        server(std::unique_ptr<storage::Engine>(engine), readers) {
    // Or the collector reserves ids later on, and stands at a gate that a test has closed.
    storage::Status status;
    server.services().data.store.ids().next(&status);
    REQUIRE(status.ok());
    REQUIRE(server.services().data.store.filling().snapshot().failure.ok());
  }
  ~Gated() {
    for (auto* gate :
         {&engine->disk_reads, &engine->walks, &engine->writes, &engine->visible_writes}) {
      gate->open();
    }
  }

  // From now on the key's record has to be fetched once more, and that stops at the gate.
  void make_cold(std::string key) {
    memory->set_cold([key = std::move(key)](storage::Space space, std::string_view stored) {
      return space == storage::Space::kMeta && storage::user_key_of(stored) == key;
    });
    engine->disk_reads.close();
  }
  uint64_t pool_tasks() { return server.services().data.readers.tasks_run(); }

  storage::MemoryEngine* const memory;
  storage::GatedEngine* const engine;
  InProcess server;
};

}  // namespace

TEST_CASE("a client that leaves while its blocks are fetched takes nothing", "[exec]") {
  const bool has_elements = GENERATE(false, true);
  Gated gated;
  InProcessClient other(gated.server);
  if (has_elements) other.run({"RPUSH", "l", "a", "b"});
  gated.make_cold("l");
  const uint64_t tasks = gated.pool_tasks();
  {
    InProcessClient client(gated.server);
    client.send({{"BLPOP", "l", "0"}});
    REQUIRE(eventually([&] { return gated.engine->disk_reads.waiting() > 0; }));
  }
  other.run({"PING"});
  gated.engine->disk_reads.open();
  REQUIRE(eventually([&] { return gated.pool_tasks() > tasks; }));  // fetched
  const std::string length = has_elements ? ":3\r\n" : ":1\r\n";
  CHECK(other.run({"RPUSH", "l", "c"}) == length);
  CHECK(other.run({"LLEN", "l"}) == length);
}

TEST_CASE("a blocking command of a client that sends no more is run, and does not wait", "[exec]") {
  InProcess server(std::move(storage::open_memory({}).first));
  InProcessClient client(server);
  InProcessClient other(server);
  client.end_input();
  CHECK(client.pipeline({{"RPUSH", "l", "x"}, {"BLPOP", "l", "0"}, {"SET", "after", "1"}}) ==
        ":1\r\n*2\r\n$1\r\nl\r\n$1\r\nx\r\n+OK\r\n");
  CHECK_FALSE(client.is_closed());
  client.send({{"BLPOP", "l", "0"}, {"SET", "never", "1"}});
  CHECK(eventually([&] { return client.is_closed(); }));
  CHECK(other.run({"RPUSH", "l", "y"}) == ":1\r\n");
  CHECK(other.run({"EXISTS", "l", "after", "never"}) == ":2\r\n");
}

TEST_CASE("what nobody will read is not read, what is written is written", "[exec]") {
  Gated gated;
  InProcessClient client(gated.server);
  InProcessClient other(gated.server);
  other.pipeline({{"SET", "k", "1"}, {"SET", "n", "1"}});
  gated.make_cold("k");
  client.send({{"GET", "k"}, {"INCR", "n"}});
  REQUIRE(eventually([&] { return gated.engine->disk_reads.waiting() == 1; }));
  client.lose();
  client.send({{"GET", "k"}, {"INCR", "n"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}, {"INCR", "n"}});
  CHECK(eventually([&] { return other.run({"GET", "n"}) == "$1\r\n4\r\n"; }));
  CHECK(gated.engine->disk_reads.waiting() == 1);
  gated.engine->disk_reads.open();
  client.receive();
}

TEST_CASE("a walk ends when its client has left", "[exec]") {
  Gated gated;
  InProcessClient client(gated.server);
  InProcessClient::Line many = {"MSET"};
  for (int i = 0; i < 200; ++i) many.insert(many.end(), {"key" + std::to_string(i), "1"});
  client.run(many);
  gated.engine->walks.close();
  client.send({{"KEYS", "*"}});
  REQUIRE(eventually([&] { return gated.engine->walks.waiting() == 1; }));
  client.lose();
  gated.engine->walks.open();
  CHECK(client.receive() == "");
}

TEST_CASE("long walks leave threads for short reads", "[exec]") {
  const int readers = GENERATE(1, 4);
  Gated gated(readers);
  InProcessClient short_one(gated.server);
  short_one.run({"SET", "k", "1"});
  gated.engine->walks.close();
  std::vector<std::unique_ptr<InProcessClient>> walkers;
  for (int i = 0; i < 6; ++i) {
    walkers.push_back(std::make_unique<InProcessClient>(gated.server));
    walkers.back()->send({{"KEYS", "*"}});
  }
  const int running = std::max(readers / 2, 1);
  REQUIRE(eventually([&] { return gated.engine->walks.waiting() == running; }));
  gated.memory->set_cold([](storage::Space, std::string_view) { return true; });
  CHECK(short_one.run({"GET", "k"}) == "$1\r\n1\r\n");
  CHECK(short_one.run({"INCR", "k"}) == ":2\r\n");
  CHECK(gated.engine->walks.waiting() == running);
  gated.engine->walks.open();
  for (auto& walker : walkers) CHECK(walker->receive() == "*1\r\n$1\r\nk\r\n");
}

TEST_CASE("a pipeline of long writes lets others have their turn", "[exec]") {
  InProcess server(std::move(storage::open_memory({}).first));
  InProcessClient heavy(server);
  InProcessClient other(server);
  std::vector<InProcessClient::Line> pipeline;
  for (int i = 0; i < 100; ++i) {
    pipeline.push_back({"SADD", "s"});
    for (int j = 0; j < 500; ++j) pipeline.back().push_back(std::to_string(i * 500 + j));
  }
  pipeline.push_back({"SETNX", "first", "heavy"});
  heavy.send(pipeline);
  CHECK(other.run({"SETNX", "first", "other"}) == ":1\r\n");
  CHECK(heavy.receive().ends_with(":500\r\n:0\r\n"));
  CHECK(other.run({"SCARD", "s"}) == ":50000\r\n");
}

TEST_CASE("a transaction of reads goes on where long walks go", "[exec]") {
  InProcess server(std::move(storage::open_memory({}).first));
  InProcessClient client(server);
  client.run({"SET", "k", "1"});
  CHECK(client.pipeline({{"MULTI"}, {"KEYS", "*"}, {"GET", "k"}, {"KEYS", "*"}, {"EXEC"}})
            .ends_with("QUEUED\r\n*3\r\n*1\r\n$1\r\nk\r\n$1\r\n1\r\n*1\r\n$1\r\nk\r\n"));
}

TEST_CASE("a refused EXEC forgets a WATCH that is still fetching", "[exec]") {
  Gated gated;
  InProcessClient client(gated.server);
  InProcessClient other(gated.server);
  other.run({"SET", "k", "1"});
  gated.make_cold("k");
  client.send({{"WATCH", "k"}, {"MULTI"}, {"EXEC", "refused"}});
  REQUIRE(eventually([&] { return gated.engine->disk_reads.waiting() > 0; }));
  gated.engine->disk_reads.open();
  CHECK(client.receive().starts_with("+OK\r\n+OK\r\n-EXECABORT"));
  other.run({"SET", "k", "2"});
  CHECK(client.pipeline({{"MULTI"}, {"PING"}, {"EXEC"}}).ends_with("*1\r\n+PONG\r\n"));
}

TEST_CASE("nobody waits for the commit of a flush, and everybody sees one state", "[exec]") {
  const std::string flush = GENERATE("FLUSHDB", "FLUSHALL", "SWAPDB");
  const bool visible = GENERATE(false, true);
  Gated gated;
  InProcessClient flusher(gated.server);
  InProcessClient reader(gated.server);
  reader.let_collector_start();  // or it stands at the gate, too
  reader.run({"SET", "k", "1"});
  storage::Gate& gate = visible ? gated.engine->visible_writes : gated.engine->writes;
  gate.close();
  if (flush == "SWAPDB") {
    flusher.send({{"SWAPDB", "0", "1"}});
  } else {
    flusher.send({{flush}});
  }
  REQUIRE(eventually([&] { return gate.waiting() == 1; }));
  const std::string expected = visible ? "$-1\r\n" : "$1\r\n1\r\n";
  for (int i = 0; i < 3; ++i) CHECK(reader.run({"GET", "k"}) == expected);
  CHECK(reader.run({"MGET", "k"}) == "*1\r\n" + expected);
  gate.open();
  CHECK(flusher.receive() == "+OK\r\n");
  CHECK(reader.run({"GET", "k"}) == "$-1\r\n");
}

// The second run finds the client as the first one did: here it must not stay in another database.
TEST_CASE("an EXEC that is refused when it runs again leaves its client alone", "[exec]") {
  Gated gated;
  InProcessClient other(gated.server);
  InProcessClient client(gated.server);
  other.pipeline({{"SET", "cold", "1"}, {"SET", "k", "0"}});
  client.run({"WATCH", "watched"});
  gated.make_cold("cold");
  client.send({{"MULTI"},
               {"CLIENT", "SETNAME", "x"},
               {"SELECT", "3"},
               {"SELECT", "0"},
               {"GET", "cold"},
               {"SELECT", "5"},
               {"EXEC"},
               {"CLIENT", "GETNAME"},
               {"GET", "k"}});
  REQUIRE(eventually([&] { return gated.engine->disk_reads.waiting() > 0; }));
  const bool broken = GENERATE(true, false);
  if (broken) other.run({"SET", "watched", "1"});
  gated.engine->disk_reads.open();
  const std::string replies = client.receive();
  INFO(replies);
  CHECK(replies.ends_with(broken ? "*-1\r\n$-1\r\n$1\r\n0\r\n"
                                 : "*5\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n+OK\r\n"
                                   "$1\r\nx\r\n$-1\r\n"));
}

TEST_CASE("an EXEC that could not be committed leaves its client alone", "[exec]") {
  Gated gated;
  InProcessClient other(gated.server);
  InProcessClient client(gated.server);
  other.pipeline({{"SET", "cold", "1"}, {"SET", "k", "0"}});
  gated.make_cold("cold");
  client.send({{"MULTI"},
               {"CLIENT", "SETNAME", "x"},
               {"SUBSCRIBE", "c"},
               {"SELECT", "5"},
               {"SELECT", "0"},
               {"INCR", "cold"},
               {"SELECT", "5"},
               {"EXEC"}});
  REQUIRE(eventually([&] { return gated.engine->disk_reads.waiting() > 0; }));
  gated.memory->fail_next_write({storage::Status::Code::kNoSpace, "full"});
  gated.engine->disk_reads.open();
  CHECK(client.receive().find("MISCONF") != std::string::npos);
  CHECK(client.pipeline({{"CLIENT", "GETNAME"}, {"GET", "k"}}) == "$-1\r\n$1\r\n0\r\n");
}
