// What replicas are told: encoding, undo, transactions, databases; and of whole groups, over the
// in-process executor.
#include "src/types/told.h"

#include <catch2/catch.hpp>
#include <future>

#include "storage/memory/memory_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using test::InProcess;
using test::InProcessClient;
using types::Told;

namespace {

// A stream as text: the words of a command with blanks between, the commands with " | ".
std::string readable(std::string_view stream) {
  const auto number = [&](char mark) {
    REQUIRE(stream.starts_with(mark));
    const size_t end = stream.find("\r\n");
    REQUIRE(end != std::string_view::npos);
    const size_t value = std::stoul(std::string(stream.substr(1, end - 1)));
    stream.remove_prefix(end + 2);
    return value;
  };
  std::string text;
  while (!stream.empty()) {
    if (!text.empty()) text += " | ";
    for (size_t words = number('*'); words > 0; --words) {
      const size_t bytes = number('$');
      REQUIRE(stream.size() >= bytes + 2);
      text += stream.substr(0, bytes);
      if (words > 1) text += ' ';
      REQUIRE(stream.substr(bytes, 2) == "\r\n");
      stream.remove_prefix(bytes + 2);
    }
  }
  return text;
}

bool declines(const types::ToldBytes&) {
  return false;
}

std::string written(const Told& told, int* selected) {
  std::string stream;
  REQUIRE(told.write(
                  selected, [&](std::string_view piece) { stream += piece; }, declines)
              .ok());
  return readable(stream);
}

class Text : public types::ToldBytes {
 public:
  explicit Text(std::string text, bool fails = false) : text_(std::move(text)), fails_(fails) {}
  storage::Status read(const Piece& piece) const override {
    if (fails_) return {storage::Status::Code::kIo, "the disk is gone"};
    for (const char c : text_) piece({&c, 1});
    return {};
  }

 private:
  const std::string text_;
  const bool fails_;
};

std::unique_ptr<storage::Engine> memory() {
  return std::move(storage::open_memory({}).first);
}

// A server whose stream is on from its first unit.
class TellingServer {
 public:
  explicit TellingServer(std::unique_ptr<storage::Engine> engine) : server_(std::move(engine)) {
    std::promise<bool> on;
    server_.writer().between_groups([&] { on.set_value(changes().turn_on().ok()); });
    REQUIRE(on.get_future().get());
    reader_ = changes().read_from(changes().place().offset);
    REQUIRE(reader_ != nullptr);
  }
  InProcess& server() { return server_; }
  data::ChangeStream& changes() { return server_.services().data.changes; }

  // What was told since the last call. What is behind the last reply may still be on its way.
  std::string told() {
    std::string stream;
    while (reader_->read(&stream) == data::Backlog::Reader::Got::kBytes) {
    }
    return readable(stream);
  }

 private:
  InProcess server_;
  std::unique_ptr<data::Backlog::Reader> reader_;
};

}  // namespace

TEST_CASE("databases are selected where they change", "[told]") {
  Told told;
  told.tell(0, {"SET", "a", "1"});
  told.end_unit();
  told.tell(0, {"SET", "b", ""});
  told.end_unit();
  told.tell(3, {"DEL", "a"});
  told.end_unit();
  int selected = -1;
  CHECK(written(told, &selected) == "SELECT 0 | SET a 1 | SET b  | SELECT 3 | DEL a");
  CHECK(selected == 3);
  CHECK(written(told, &selected) == "SELECT 0 | SET a 1 | SET b  | SELECT 3 | DEL a");
  selected = 0;
  CHECK(written(told, &selected) == "SET a 1 | SET b  | SELECT 3 | DEL a");
}

TEST_CASE("a unit that tells several commands is a transaction", "[told]") {
  Told told;
  told.tell(2, {"A"});
  told.tell(1, {"B"});
  told.end_unit();
  told.end_unit();
  told.tell(1, {"C"});
  told.end_unit();
  int selected = 0;
  CHECK(written(told, &selected) == "SELECT 2 | MULTI | A | SELECT 1 | B | EXEC | C");

  Told expired;
  const Told::Savepoint before = expired.savepoint();
  expired.tell(0, {"DEL", "a"});
  expired.tell(0, {"DEL", "b"});
  expired.separate(before);
  expired.tell(0, {"C"});
  expired.tell(0, {"D"});
  expired.end_unit();
  selected = 0;
  CHECK(written(expired, &selected) == "DEL a | DEL b | MULTI | C | D | EXEC");
}

TEST_CASE("what was undone is not told", "[told]") {
  Told told;
  told.tell(0, {"A", "1"});
  const Told::Savepoint before = told.savepoint();
  told.tell(5, {"B", "2"});
  told.rollback(before);
  told.tell(0, {"C"});
  told.end_unit();
  int selected = 0;
  CHECK(written(told, &selected) == "MULTI | A 1 | C | EXEC");
  told.rollback({.commands = 0, .bytes = 0});
  CHECK(told.empty());
  CHECK(written(told, &selected).empty());
}

TEST_CASE("what is not held is read when it is told", "[told]") {
  Told told;
  const std::string_view words[] = {"SET", "k", "", "PXAT", "5"};
  told.tell(0, words, 2, {.bytes = 5, .source = std::make_shared<Text>("large")});
  told.end_unit();
  std::string several;
  const std::string_view first[] = {"SREM", "s", "a"};
  const std::string_view second[] = {"SREM", "s", "b"};
  types::append_command(&several, first);
  types::append_command(&several, second);
  told.tell(0, 2, std::make_shared<Text>(several));
  told.end_unit();
  told.tell(0, {"DEL", "x"});
  told.end_unit();
  int selected = 0;
  CHECK(written(told, &selected) ==
        "SET k large PXAT 5 | MULTI | SREM s a | SREM s b | EXEC | DEL x");
  told.tell(0, words, 2, {.bytes = 5, .source = std::make_shared<Text>("", /*fails=*/true)});
  CHECK_FALSE(told.write(
                      &selected, [](std::string_view) {}, declines)
                  .ok());
}

TEST_CASE("bytes that are passed on stay where they came", "[told]") {
  Told told;
  std::string ping;
  const std::string_view word[] = {"PING"};
  types::append_command(&ping, word);
  told.tell(0, {"A"});
  told.pass_on(ping, {});
  told.tell(0, {"B"});
  told.end_unit();
  told.pass_on(ping, 4);
  told.tell(0, {"C"});
  told.end_unit();
  told.pass_on(ping, 6);
  int selected = 0;
  CHECK(written(told, &selected) == "A | PING | B | PING | SELECT 0 | C | PING");
  CHECK(selected == 6);
}

TEST_CASE("replicas are told what was committed, in order", "[told][exec]") {
  TellingServer telling(memory());
  InProcessClient client(telling.server());
  client.pipeline({{"SET", "a", "1"}, {"GET", "a"}, {"INCRBYFLOAT", "a", "0.5"}, {"DEL", "none"}});
  CHECK(telling.told() == "SELECT 0 | SET a 1 | SET a 1.5 KEEPTTL");
  client.pipeline({{"MULTI"}, {"SELECT", "2"}, {"SET", "b", "1"}, {"INCR", "b"}, {"EXEC"}});
  CHECK(telling.told() == "SELECT 2 | MULTI | SET b 1 | INCR b | EXEC");
  client.pipeline({{"MULTI"}, {"SET", "b", "x"}, {"INCR", "b"}, {"EXEC"}});
  CHECK(telling.told() == "SET b x");
  client.run(
      {"EVAL", "redis.call('set', 'c', '1') redis.pcall('incr', 'b') redis.call('del', 'c')", "0"});
  CHECK(telling.told() == "MULTI | set c 1 | del c | EXEC");
  client.run({"PUBLISH", "channel", "text"});
  CHECK(telling.told() == "PUBLISH channel text");
}

TEST_CASE("what followers can read counts as told", "[told][exec]") {
  TellingServer telling(memory());
  InProcessClient client(telling.server());
  client.run({"SET", "a", "1"});
  uint64_t told = 0;
  telling.changes().when_beyond(telling.changes().place().offset,
                                [&] { told = telling.server().services().replicas.told; });
  client.run({"SET", "a", "2"});
  CHECK(told == telling.changes().place().offset);  // else an early acknowledgement is not believed
}

TEST_CASE("nothing is told while the stream is off, nor afterwards", "[told][exec]") {
  InProcess server(memory());
  data::ChangeStream& changes = server.services().data.changes;
  InProcessClient client(server);
  client.pipeline({{"SET", "a", "1"}, {"PUBLISH", "b", "c"}});
  CHECK_FALSE(changes.on());
  CHECK(changes.place().offset == 0);
  CHECK(changes.backlog().bytes == 0);
}

TEST_CASE("a group that was not committed tells nothing", "[told][exec]") {
  auto owned = memory();
  auto& engine = static_cast<storage::MemoryEngine&>(*owned);
  TellingServer telling(std::move(owned));
  InProcessClient client(telling.server());
  client.run({"SET", "a", "1"});
  CHECK(telling.told() == "SELECT 0 | SET a 1");
  const uint64_t offset = telling.changes().place().offset;
  engine.fail_next_write({storage::Status::Code::kNoSpace, "full"});
  CHECK(client.pipeline({{"SELECT", "3"}, {"SET", "a", "2"}}).starts_with("+OK\r\n-"));
  CHECK(telling.changes().place().offset == offset);
  REQUIRE(engine.try_resume().ok());
  client.run({"SET", "a", "3"});
  CHECK(telling.told() == "SELECT 3 | SET a 3");
}

TEST_CASE("what a run that missed its blocks has told is told once", "[told][exec]") {
  auto engine = memory();
  static_cast<storage::MemoryEngine&>(*engine).set_cold(
      [](storage::Space space, std::string_view) { return space == storage::Space::kMeta; });
  TellingServer telling(std::move(engine));
  InProcessClient client(telling.server());
  client.pipeline({{"SADD", "s", "a"},
                   {"RPUSH", "l", "1", "2"},
                   {"LMOVE", "l", "l2", "LEFT", "LEFT"},
                   {"SPOP", "s"},
                   {"SET", "k", "v", "PX", "10"}});
  CHECK(telling.told() ==
        "SELECT 0 | SADD s a | RPUSH l 1 2 | LMOVE l l2 LEFT LEFT | SREM s a | "
        "SET k v PXAT 1700000000010");
  telling.server().now_ms += 20;
  client.run({"MGET", "k", "x"});
  client.run({"SET", "wake", "the writer"});
  CHECK(telling.told() == "DEL k | SET wake the writer");
}

TEST_CASE("fields that expire are told as removed", "[told][exec]") {
  TellingServer telling(memory());
  InProcessClient client(telling.server());
  client.pipeline({{"HSET", "h", "a", "1", "b", "2", "c", "3"},
                   {"HEXPIRE", "h", "100", "FIELDS", "2", "a", "none"},
                   {"HPEXPIRE", "h", "50", "GT", "FIELDS", "1", "b"},
                   {"HPEXPIRE", "h", "10", "FIELDS", "2", "b", "c"},
                   {"HEXPIREAT", "h", "1", "FIELDS", "1", "c"},
                   {"HPERSIST", "h", "FIELDS", "1", "none"},
                   {"HINCRBYFLOAT", "h", "a", "1.5"}});
  CHECK(telling.told() ==
        "SELECT 0 | HSET h a 1 b 2 c 3 | HPEXPIREAT h 1700000100000 FIELDS 1 a | "
        "HPEXPIREAT h 1700000000010 FIELDS 2 b c | HDEL h c | "
        "MULTI | HSET h a 2.5 | HPEXPIREAT h 1700000100000 FIELDS 1 a | EXEC");
  // Before whatever takes it for one that is not there.
  client.run({"DEBUG", "SET-ACTIVE-EXPIRE", "0"});
  telling.server().now_ms += 20;
  client.run({"HSETNX", "h", "b", "new"});
  const std::string told = telling.told();
  CHECK(
      (told == "HDEL h b | HSETNX h b new" || told == "MULTI | HDEL h b | HSETNX h b new | EXEC"));
}
