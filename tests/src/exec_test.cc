// Sessions, writer and reader pool together, in process: order, transactions, expiry by a manual
// clock, cache misses in the writer, and many clients at a time.
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "storage/codec.h"
#include "storage/memory/memory_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using test::InProcess;
using test::InProcessClient;

namespace {

std::unique_ptr<storage::Engine> memory() {
  return std::move(storage::open_memory({}).first);
}

}  // namespace

TEST_CASE("replies come in the order of the commands", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  CHECK(client.pipeline({{"SET", "k", "1"},
                         {"GET", "k"},
                         {"INCR", "k"},
                         {"PING"},
                         {"GET", "k"},
                         {"DBSIZE"},
                         {"NOSUCH"},
                         {"DEL", "k"},
                         {"EXISTS", "k"}}) ==
        "+OK\r\n$1\r\n1\r\n:2\r\n+PONG\r\n$1\r\n2\r\n:1\r\n"
        "-ERR unknown command 'NOSUCH', with args beginning with: \r\n:1\r\n:0\r\n");
}

TEST_CASE("a transaction keeps what its failed commands did not do", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  CHECK(client.pipeline({{"MULTI"}, {"SET", "k", "x"}, {"INCR", "k"}, {"GET", "k"}, {"EXEC"}}) ==
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n"
        "-ERR value is not an integer or out of range\r\n$1\r\nx\r\n");
  CHECK(client.pipeline({{"MULTI"}, {"SET", "k", "y"}, {"GET"}, {"EXEC"}, {"GET", "k"}}) ==
        "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'get' command\r\n"
        "-EXECABORT Transaction discarded because of previous errors.\r\n$1\r\nx\r\n");
}

TEST_CASE("WATCH sees what others write, whatever the way", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  InProcessClient other(server);
  auto [write, broken] =
      GENERATE(table<InProcessClient::Line, bool>({{{"SET", "k", "2"}, true},
                                                   {{"DEL", "k"}, true},
                                                   {{"FLUSHALL"}, true},
                                                   {{"SWAPDB", "0", "1"}, true},
                                                   {{"RENAME", "k", "l"}, true},
                                                   {{"SET", "other", "2"}, false},
                                                   {{"GET", "k"}, false}}));
  client.run({"SET", "k", "1"});
  client.run({"WATCH", "k"});
  other.run(write);
  std::string reply = client.pipeline({{"MULTI"}, {"PING"}, {"EXEC"}});
  CHECK(reply == (broken ? "+OK\r\n+QUEUED\r\n*-1\r\n" : "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n"));
}

TEST_CASE("keys expire at their time, and are removed by themselves", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  client.pipeline({{"SET", "a", "1", "PX", "100"}, {"SET", "b", "1"}, {"PEXPIRE", "b", "200"}});
  server.now_ms += 99;
  CHECK(client.run({"GET", "a"}) == "$1\r\n1\r\n");
  server.now_ms += 1;
  CHECK(client.run({"GET", "a"}) == "$-1\r\n");
  // Put off: the index fires early and is put right.
  CHECK(client.run({"PEXPIRE", "b", "1000"}) == ":1\r\n");
  server.now_ms += 150;
  client.run({"SET", "wake", "the writer"});
  CHECK(client.run({"DBSIZE"}) == ":2\r\n");
  server.now_ms += 900;
  client.run({"SET", "wake", "again"});
  CHECK(client.run({"DBSIZE"}) == ":1\r\n");
  CHECK(client.run({"EXISTS", "b"}) == ":0\r\n");
}

TEST_CASE("a write that needs the disk is run again and counts once", "[exec]") {
  auto engine = memory();
  auto& cold = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.pipeline({{"SET", "n", "5"}, {"SET", "m", "7"}});
  cold.set_cold(
      [](storage::Space space, std::string_view) { return space == storage::Space::kMeta; });
  CHECK(client.pipeline({{"INCR", "n"}, {"INCR", "m"}, {"APPEND", "n", "0"}}) ==
        ":6\r\n:8\r\n:2\r\n");
  CHECK(client.pipeline({{"MULTI"}, {"INCRBY", "n", "1"}, {"GET", "m"}, {"EXEC"}, {"DBSIZE"}}) ==
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:61\r\n$1\r\n8\r\n:2\r\n");
  CHECK(server.services().data.stats.rollbacks > 0);
}

TEST_CASE("a failed commit answers errors and leaves nothing", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.run({"SET", "k", "1"});
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.run({"INCR", "k"}) ==
        "-MISCONF Errors writing to the AOF file: No space left on device\r\n");
  REQUIRE(server.services().data.store.engine().try_resume().ok());
  CHECK(client.pipeline({{"GET", "k"}, {"DBSIZE"}, {"INCR", "k"}}) == "$1\r\n1\r\n:1\r\n:2\r\n");
  failing.fail_next_write({storage::Status::Code::kIo, "fsync failed"});
  CHECK(client.run({"INCR", "k"}).starts_with("-MISCONF"));
  // Undecided on the disk: no write is taken any more, reads go on.
  CHECK(client.run({"INCR", "k"}).starts_with("-MISCONF"));
  CHECK(client.run({"GET", "k"}) == "$1\r\n2\r\n");
}

TEST_CASE("a write waits for the next look at the space when what it allowed is spent", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  server.writer().refuse_growth("", 1);
  CHECK(client.run({"SET", "k", "1"}) == "+OK\r\n");
  {
    std::jthread looks([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      server.writer().refuse_growth("", 1);
    });
    CHECK(client.run({"SET", "k", "2"}) == "+OK\r\n");
  }
  {
    std::jthread looks([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      server.writer().refuse_growth("", 1);
    });
    // Which wakes the writer, and has nothing to say about space.
    server.writer().unwatch(1);
    CHECK(client.run({"SET", "k", "2"}) == "+OK\r\n");
  }
  // Nobody looks: growth is refused, and nothing else.
  CHECK(client.pipeline({{"SET", "k", "3"}, {"GET", "k"}, {"DEL", "k"}}) ==
        "-MISCONF Errors writing to the AOF file: No space left on device\r\n$1\r\n2\r\n:1\r\n");
  server.writer().refuse_growth("", 1 << 20);
  CHECK(client.run({"SET", "k", "4"}) == "+OK\r\n");
}

TEST_CASE("where space is short nothing large is built, but what removals leave", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  CHECK(client.run({"SET", "k", std::string(8 << 20, 'x')}) == "+OK\r\n");
  for (int i = 0; i < 4; ++i) client.run({"RPUSH", "l", std::string(1 << 20, 'x')});
  server.services().data.collector.set_space(true, 0);
  const std::string refusal =
      "-MISCONF Errors writing to the AOF file: No space left on device\r\n";
  CHECK(client.run({"COPY", "k", "copy"}) == refusal);
  CHECK(client.run({"BITOP", "NOT", "k", "k"}) == refusal);
  CHECK(client.run({"LTRIM", "l", "1", "-1"}) == "+OK\r\n");
  CHECK(client.run({"LLEN", "l"}) == ":3\r\n");
  server.services().data.collector.set_space(false, 0);
  CHECK(client.run({"COPY", "k", "copy"}) == ":1\r\n");
}

TEST_CASE("a commit that fails tells nobody", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  InProcessClient listener(server);
  server.services().couriers.want_events(types::notify::kKeyevent | types::notify::kAll);
  CHECK(listener.pipeline({{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON"}, {"GET", "k"}})
            .ends_with("+OK\r\n_\r\n"));
  listener.pipeline({{"SUBSCRIBE", "news", "__keyevent@0__:set"}});
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.pipeline({{"MULTI"}, {"PUBLISH", "news", "x"}, {"SET", "k", "1"}, {"EXEC"}})
            .find("MISCONF") != std::string::npos);
  CHECK(listener.run({"PING"}) == "+PONG\r\n");
  REQUIRE(failing.try_resume().ok());
  client.pipeline({{"MULTI"}, {"PUBLISH", "news", "x"}, {"SET", "k", "1"}, {"EXEC"}});
  CHECK(listener.run({"PING"}) ==
        ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n"
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
        ">3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$1\r\nk\r\n+PONG\r\n");
}

TEST_CASE("whoever tells more than can be carried is answered when it has been", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  InProcessClient listener(server);
  listener.run({"SUBSCRIBE", "news"});
  const std::string text(3 << 20, 'x');
  std::vector<InProcessClient::Line> lines(5, {"PUBLISH", "news", text});
  lines.push_back({"SET", "k", "v"});
  for (int round = 0; round < 5; ++round) {
    CHECK(client.pipeline(lines) == ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n+OK\r\n");
  }
}

TEST_CASE("what a failed commit had expired is due still", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.pipeline({{"SET", "a", "1", "PX", "100"}, {"SET", "b", "1"}});
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  server.now_ms += 200;
  client.run({"DEL", "b"});  // its group removes what is due first
  CHECK(client.run({"DBSIZE"}) == ":2\r\n");
  // What may grow is refused until there is space; what cannot is tried.
  CHECK(client.run({"SET", "c", "1"}).starts_with("-MISCONF"));
  REQUIRE(failing.try_resume().ok());
  server.now_ms += 200;
  CHECK(client.run({"DEL", "b"}) == ":1\r\n");
  CHECK(client.run({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("an id that could not be reserved is not used", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  InProcessClient::Line large = {"SADD", "s"};
  for (int i = 0; i < 500; ++i) large.push_back("member" + std::to_string(i));
  data::Store& store = server.services().data.store;
  storage::Status failure;
  // What is left of the first block: from here on, the next id takes a reservation.
  std::string record;
  const auto reserved = [&] {
    REQUIRE(store.engine().get(nullptr, storage::Space::kSystem, storage::reserved_ids_key(),
                               storage::Tier::kDisk, &record, nullptr) == storage::Lookup::kFound);
    return storage::read_le64(record);
  };
  storage::CollectionId last = store.ids().next(&failure);
  while (last + 1 < reserved()) last = store.ids().next(&failure);
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.run(large).starts_with("-MISCONF"));
  REQUIRE(failing.try_resume().ok());
  CHECK(client.run(large) == ":500\r\n");
  CHECK(reserved() > last + 1);
}

namespace {

constexpr int kMany = 3000;  // more than the writer copies itself

InProcessClient::Line many_members(std::string key) {
  InProcessClient::Line line = {"SADD", std::move(key)};
  for (int i = 0; i < kMany; ++i) line.push_back("member" + std::to_string(i));
  return line;
}

}  // namespace

TEST_CASE("a large value is built beside the writer, and linked", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  auto& built = server.services().data.stats.pool_built_units;
  client.run(many_members("s"));
  CHECK(client.pipeline({{"COPY", "s", "t"}, {"SREM", "s", "member7"}, {"SCARD", "t"}}) ==
        ":1\r\n:1\r\n:3000\r\n");
  CHECK(built == 1);
  CHECK(client.pipeline({{"SISMEMBER", "t", "member7"}, {"SISMEMBER", "s", "member7"}}) ==
        ":1\r\n:0\r\n");
  CHECK(client.run({"SUNIONSTORE", "u", "s", "t"}) == ":3000\r\n");
  CHECK(built == 2);
  CHECK(client.pipeline({{"DBSIZE"}, {"COPY", "s", "t"}}) == ":3\r\n:0\r\n");
}

TEST_CASE("few of very many are taken from where they are", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  InProcessClient::Line set = {"SADD", "s"}, list = {"RPUSH", "l"}, sorted = {"ZADD", "z"};
  for (int i = 0; i < 12'000; ++i) {
    set.push_back(std::to_string(i));
    list.push_back(std::to_string(i));
    sorted.insert(sorted.end(), {std::to_string(i), std::to_string(i)});
  }
  client.pipeline({set, list, sorted});
  const auto collections = [&] {
    std::set<std::string> ids;
    const auto cursor = server.services().data.store.engine().new_cursor(storage::Space::kData, {});
    for (cursor->seek({}); cursor->valid(); cursor->next()) {
      ids.emplace(cursor->key().substr(0, storage::collection_begin(1).size()));
    }
    return ids;
  };
  const std::set<std::string> before = collections();
  REQUIRE(before.size() == 3);
  client.pipeline({{"SPOP", "s", "5000"}, {"LPOP", "l", "5000"}, {"ZPOPMIN", "z", "5000"}});
  CHECK(collections() == before);
  CHECK(client.pipeline({{"SCARD", "s"}, {"LLEN", "l"}, {"ZCARD", "z"}}) ==
        ":7000\r\n:7000\r\n:7000\r\n");
}

// From the sixteenth time on nothing more is asked of the pool, and what it has made is good.
TEST_CASE("a script that has asked the pool very often takes from a far larger collection",
          "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  client.run(many_members("s"));
  constexpr int kElements = 110'000;
  InProcessClient::Line list;
  for (int i = 0; i < kElements; ++i) {
    if (list.empty()) list = {"RPUSH", "l"};
    list.push_back(std::to_string(i));
    if (list.size() < 10'000 && i + 1 < kElements) continue;
    client.run(list);
    list.clear();
  }
  const std::string script =
      "for i = 1, 15 do redis.call('COPY', KEYS[1], 't' .. i) end "
      "redis.call('LTRIM', KEYS[2], 17000, -1)";
  client.run({"EVAL", script, "2", "s", "l"});
  CHECK(client.pipeline({{"TYPE", "l"}, {"LLEN", "l"}, {"LINDEX", "l", "0"}}) ==
        "+list\r\n:93000\r\n$5\r\n17000\r\n");
}

TEST_CASE("what only a transaction has is built in its place", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  client.run(many_members("s"));
  const std::string reply = client.pipeline({{"MULTI"},
                                             {"SADD", "s", "own"},
                                             {"COPY", "s", "t"},
                                             {"SISMEMBER", "t", "own"},
                                             {"EXEC"},
                                             {"SCARD", "t"}});
  CHECK(reply.ends_with("*3\r\n:1\r\n:1\r\n:1\r\n:3001\r\n"));
}

TEST_CASE("what the pool cannot build fails its command at once", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  client.run(many_members("s"));
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.run({"COPY", "s", "t"}) ==
        "-MISCONF Errors writing to the AOF file: No space left on device\r\n");
  CHECK(server.services().data.stats.pool_built_units == 1);
  REQUIRE(failing.try_resume().ok());
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.pipeline({{"MULTI"}, {"SET", "k", "v"}, {"COPY", "s", "t"}, {"EXEC"}})
            .ends_with("MISCONF Errors writing to the AOF file: No space left on device\r\n"));
  REQUIRE(failing.try_resume().ok());
  CHECK(client.pipeline({{"EXISTS", "t", "k"}, {"COPY", "s", "t"}, {"SCARD", "t"}, {"DBSIZE"}}) ==
        ":0\r\n:1\r\n:3000\r\n:2\r\n");
}

TEST_CASE("many clients at a time", "[exec]") {
  InProcess server(memory(), 4);
  server.services().data.store.cache().set_capacity(1 << 20);
  constexpr int kClients = 8;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  std::atomic<bool> wrong{false};
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&server, &wrong, c] {
      InProcessClient client(server);
      std::string mine = "mine" + std::to_string(c);
      for (int round = 1; round <= kRounds; ++round) {
        std::string count = std::to_string(round);
        std::string reply =
            client.pipeline({{"INCR", mine}, {"INCR", "shared"}, {"GET", mine}, {"KEYS", mine}});
        std::string expected = "$" + std::to_string(count.size()) + "\r\n" + count + "\r\n*1\r\n$" +
                               std::to_string(mine.size()) + "\r\n" + mine + "\r\n";
        if (!reply.starts_with(":" + count + "\r\n") || !reply.ends_with(expected)) wrong = true;
        if (c == 0 && round % 50 == 0)
          (void)server.services().data.readers.resize(1 + round / 50 % 6);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(wrong);
  InProcessClient client(server);
  CHECK(client.run({"GET", "shared"}) == "$4\r\n" + std::to_string(kClients * kRounds) + "\r\n");
  CHECK(client.run({"DBSIZE"}) == ":" + std::to_string(kClients + 1) + "\r\n");
}

TEST_CASE("whoever wants keyspace events hears them after the commit, in order", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  InProcessClient listener(server);
  listener.run({"PSUBSCRIBE", "__keyevent@*"});
  // As "name db key", since the last call.
  const auto heard = [&] {
    std::vector<std::string> events;
    std::istringstream replies(listener.run({"PING"}));
    std::vector<std::string> words;
    for (std::string line; std::getline(replies, line);) {
      line.pop_back();
      if (!line.empty() && line[0] != '*' && line[0] != '$') words.push_back(line);
    }
    REQUIRE(words.size() % 4 == 1);  // but for the answer to PING, which is empty
    for (size_t i = 0; i + 4 < words.size(); i += 4) {
      const std::string& channel = words[i + 2];  // __keyevent@0__:name
      events.push_back(channel.substr(channel.find(':') + 1) + " " + channel[11] + " " +
                       words[i + 3]);
    }
    return events;
  };
  client.run({"SET", "untold", "1"});
  server.services().couriers.want_events(types::notify::kKeyevent | types::notify::kAll);
  client.pipeline({{"SET", "k", "1", "EX", "10"},
                   {"INCR", "k"},
                   {"APPEND", "k", "x"},
                   {"INCR", "k"},  // fails: no event
                   {"GET", "k"},
                   {"SETRANGE", "k", "0", "y"},
                   {"PERSIST", "k"},
                   {"RENAME", "k", "l"},
                   {"COPY", "l", "m"},
                   {"MOVE", "m", "2"},
                   {"EXPIRE", "l", "-1"},
                   {"MULTI"},
                   {"MSET", "a", "1", "b", "2"},
                   {"DEL", "a", "nothing"},
                   {"EXEC"},
                   {"PEXPIRE", "b", "5"}});
  const std::vector<std::string> expected = {
      "set 0 k",      "expire 0 k",    "incrby 0 k",      "append 0 k",
      "setrange 0 k", "persist 0 k",   "rename_from 0 k", "rename_to 0 l",
      "copy_to 0 m",  "move_from 0 m", "move_to 2 m",     "del 0 l",
      "set 0 a",      "set 0 b",       "del 0 a",         "expire 0 b"};
  CHECK(heard() == expected);
  server.now_ms += 10;
  client.run({"EXISTS", "b"});
  client.run({"SET", "wake", "1"});
  CHECK(heard() == std::vector<std::string>{"expired 0 b", "set 0 wake"});
  client.pipeline({{"GET", "nothing"}, {"DEL", "nothing"}});
  CHECK(heard().empty());  // a miss is told only where it is asked for by name
  server.services().couriers.want_events(types::notify::kKeyevent | types::notify::kKeyMiss);
  client.run({"GET", "nothing"});
  client.run({"MGET", "wake", "neither", "nor"});
  client.run({"DEL", "nothing"});
  client.pipeline({{"MULTI"}, {"SET", "x", "1"}, {"HGET", "none", "f"}, {"GET", "x"}, {"EXEC"}});
  CHECK(heard() == std::vector<std::string>{"keymiss 0 nothing", "keymiss 0 neither",
                                            "keymiss 0 nor", "keymiss 0 none"});
}

TEST_CASE("a collection that lacks elements is an error, and nobody waits for them", "[exec]") {
  const int elements = GENERATE(100, 2000);  // held, streamed
  const auto [fill, read] = GENERATE(table<std::string, InProcessClient::Line>({
      {"RPUSH", {"LRANGE", "k", "0", "-1"}},
      {"SADD", {"SMEMBERS", "k"}},
      {"HSET", {"HGETALL", "k"}},
      {"ZADD", {"ZRANGE", "k", "0", "-1"}},
  }));
  INFO(fill << " of " << elements);
  auto* engine = new storage::MemoryEngine({});
  InProcess server{std::unique_ptr<storage::Engine>(engine)};
  InProcessClient client(server);
  InProcessClient::Line line = {fill, "k"};
  for (int i = 0; i < elements; ++i) {
    if (fill == "HSET" || fill == "ZADD") line.push_back(std::to_string(i));
    line.push_back(std::to_string(i) + std::string(100, 'x'));
  }
  client.run(line);
  const std::string whole = client.run(read);
  CHECK(whole.size() > 100u * elements);
  CHECK_FALSE(client.is_closed());

  // Of a sorted set a whole leaf goes, of the others an element.
  const auto space = fill == "ZADD" ? storage::Space::kOrder : storage::Space::kData;
  auto cursor = engine->new_cursor(space, {});
  cursor->seek({});
  for (int i = 0; i < 5; ++i) cursor->next();
  auto batch = engine->new_batch();
  batch->remove(space, cursor->key());
  REQUIRE(engine->write(*batch, storage::Durability::kBuffered).ok());
  const std::string damaged = client.run(read);
  CHECK((damaged.starts_with("-ERR storage error") || client.is_closed()));
}

TEST_CASE("a read removes what has expired, and answers once whatever comes of it", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  server.services().server.set_active_expire(false);
  client.pipeline({{"SET", "a", "1", "PX", "100"}, {"SET", "b", "1", "PX", "100"}});
  server.now_ms += 200;
  CHECK(client.run({"DBSIZE"}) == ":2\r\n");
  CHECK(client.pipeline({{"GET", "a"}, {"PING"}, {"DBSIZE"}}) == "$-1\r\n+PONG\r\n:1\r\n");
  CHECK(server.services().data.stats.expired_keys == 1);
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.pipeline({{"EXISTS", "b"}, {"DBSIZE"}, {"PING"}}) == ":0\r\n:1\r\n+PONG\r\n");
  REQUIRE(failing.try_resume().ok());
  CHECK(client.pipeline({{"MULTI"}, {"TTL", "b"}, {"EXEC"}}) == "+OK\r\n+QUEUED\r\n*1\r\n:-2\r\n");
  CHECK(client.run({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("a command in parts ends with an error when one of them is not kept", "[exec]") {
  auto engine = memory();
  auto& failing = static_cast<storage::MemoryEngine&>(*engine);
  InProcess server(std::move(engine));
  InProcessClient client(server);
  settings::Config& config = server.services().data.config;
  const std::string arguments[] = {"--enable-debug-command", "yes"};
  REQUIRE_FALSE(config.load(arguments));
  CHECK(client.pipeline({{"DEBUG", "POPULATE", "2500"}, {"DBSIZE"}}) == "+OK\r\n:2500\r\n");
  failing.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.pipeline({{"DEBUG", "POPULATE", "9000", "more"}, {"PING"}}) ==
        "-MISCONF Errors writing to the AOF file: No space left on device\r\n+PONG\r\n");
}

TEST_CASE("scripts that come together are answered each, in order", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  std::vector<InProcessClient::Line> lines;
  std::string wanted;
  for (int i = 0; i < 100; ++i) {
    const std::string busy = i % 10 == 3 ? "for i = 1, 200000 do end " : "";
    lines.push_back({"EVAL_RO", busy + "return " + std::to_string(i), "0"});
    wanted += ":" + std::to_string(i) + "\r\n";
    if (i % 7 != 0) continue;
    lines.push_back({"SET", "k", std::to_string(i)});
    wanted += "+OK\r\n";
  }
  CHECK(client.pipeline(lines) == wanted);
}

TEST_CASE("WAITAOF is answered when a sync has come behind it", "[exec]") {
  InProcess server(memory());
  InProcessClient client(server);
  CHECK(client.pipeline(
            {{"SET", "k", "1"}, {"WAITAOF", "1", "0", "0"}, {"WAITAOF", "1", "0", "0"}}) ==
        "+OK\r\n*2\r\n:1\r\n:0\r\n*2\r\n:1\r\n:0\r\n");
}
