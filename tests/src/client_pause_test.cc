// CLIENT PAUSE by a manual clock, and what an EXEC that runs twice leaves of its client.
#include <catch2/catch.hpp>

#include "storage/memory/memory_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using test::InProcess;
using test::InProcessClient;

namespace {

std::unique_ptr<storage::Engine> empty_memory() {
  return std::move(storage::open_memory({}).first);
}

// The writer looks at the time when something comes; this is nothing.
void wake_writer(InProcessClient& client) {
  CHECK(client.run({"UNWATCH"}) == "+OK\r\n");
}

}  // namespace

TEST_CASE("a pause of writes ends in its time", "[exec]") {
  InProcess server(empty_memory());
  InProcessClient admin(server);
  InProcessClient writer(server);
  CHECK(admin.pipeline({{"SET", "k", "a"}, {"CLIENT", "PAUSE", "100", "WRITE"}, {"GET", "k"}}) ==
        "+OK\r\n+OK\r\n$1\r\na\r\n");
  writer.send({{"GET", "k"}, {"SET", "k", "b"}, {"GET", "k"}});
  server.now_ms += 99;
  wake_writer(admin);
  CHECK(admin.run({"GET", "k"}) == "$1\r\na\r\n");
  CHECK(server.services().pause.waiting() == 1);
  server.now_ms += 1;
  wake_writer(admin);
  CHECK(writer.receive() == "$1\r\na\r\n+OK\r\n$1\r\nb\r\n");
  CHECK(server.services().pause.waiting() == 0);
}

TEST_CASE("a pause only grows, until it is ended", "[exec]") {
  exec::ClientPause pause;
  using Mode = exec::ClientPause::Mode;
  CHECK(pause.wait([] {}) == 0);
  pause.begin(Mode::kChanges, 1000, 0);
  pause.begin(Mode::kAll, 500, 0);
  CHECK(pause.mode(999) == Mode::kAll);
  CHECK(pause.until_ms() == 1000);
  pause.begin(Mode::kChanges, 2000, 0);
  CHECK(pause.mode(1999) == Mode::kAll);
  CHECK(pause.mode(2000) == Mode::kNone);
  // Its time is over, though nobody has ended it: the next one is another.
  pause.begin(Mode::kChanges, 2500, 2100);
  CHECK(pause.mode(2200) == Mode::kChanges);
  CHECK(pause.until_ms() == 2500);
  std::string order;
  pause.wait([&] { order += 'a'; });
  const uint64_t gone = pause.wait([&] { order += 'b'; });
  pause.wait([&] { order += 'c'; });
  pause.forget(gone);
  pause.end();
  CHECK(order == "ac");
  CHECK_FALSE(pause.is_on());
}

TEST_CASE("nothing expires in a pause, and what has expired is not seen", "[exec]") {
  InProcess server(empty_memory());
  InProcessClient admin(server);
  admin.pipeline({{"SET", "k", "v", "PX", "100"}, {"SET", "other", "v"}, {"WATCH", "other"}});
  CHECK(admin.run({"CLIENT", "PAUSE", "1000", "WRITE"}) == "+OK\r\n");
  server.now_ms += 200;
  wake_writer(admin);
  CHECK(admin.pipeline({{"DBSIZE"}, {"EXISTS", "k"}}) == ":2\r\n:0\r\n");
  admin.run({"WATCH", "other"});  // so that the reads run in the writer
  CHECK(admin.pipeline({{"MULTI"}, {"GET", "k"}, {"EXEC"}, {"DBSIZE"}}) ==
        "+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n:2\r\n");
  CHECK(admin.pipeline({{"CLIENT", "UNPAUSE"}, {"SET", "k", "w", "NX"}, {"DBSIZE"}}) ==
        "+OK\r\n+OK\r\n:2\r\n");
}

TEST_CASE("an EXEC that runs again finds its client as it was", "[exec]") {
  const bool is_cold = GENERATE(false, true);
  auto engine = empty_memory();
  auto& memory = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.pipeline({{"SET", "n", "5"}, {"HELLO", "3"}, {"SUBSCRIBE", "a", "b"}});
  if (is_cold) {
    memory.set_cold(
        [](storage::Space space, std::string_view) { return space == storage::Space::kMeta; });
  }
  CHECK(client.pipeline({{"MULTI"},
                         {"UNSUBSCRIBE"},
                         {"SUBSCRIBE", "c"},
                         {"CLIENT", "REPLY", "OFF"},
                         {"INCR", "n"},
                         {"CLIENT", "REPLY", "ON"},
                         {"INCR", "n"},
                         {"EXEC"}}) ==
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*6\r\n"
        ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n"
        ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n+OK\r\n:7\r\n");
  CHECK((server.services().data.stats.rollbacks > 0) == is_cold);
}

TEST_CASE("an EXEC that is not committed leaves its client as it was", "[exec]") {
  auto engine = empty_memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.run({"CLIENT", "SETNAME", "before"});
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  client.pipeline({{"MULTI"},
                   {"CLIENT", "SETNAME", "after"},
                   {"SELECT", "3"},
                   {"SUBSCRIBE", "c"},
                   {"CLIENT", "TRACKING", "ON"},
                   {"CLIENT", "REPLY", "OFF"},
                   {"SET", "k", "v"},
                   {"EXEC"}});
  REQUIRE(server.services().data.store.engine().try_resume().ok());
  CHECK(client.run({"CLIENT", "GETNAME"}) == "$6\r\nbefore\r\n");
  CHECK(client.run({"CLIENT", "GETREDIR"}) == ":-1\r\n");
  CHECK(client.pipeline({{"UNSUBSCRIBE", "c"}, {"SET", "k", "w"}, {"SELECT", "0"}, {"GET", "k"}}) ==
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n+OK\r\n+OK\r\n$1\r\nw\r\n");
}
