// The parser against what was encoded, in every fragmentation, and its protocol errors, which were
// taken from a redis-server 7.0.
#include "net/resp_parser.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace ingot::net {
namespace {

using Args = std::vector<std::string>;
using Commands = std::vector<Args>;

class CountingSink final : public ArgumentSink {
 public:
  void write(std::string, std::move_only_function<void(bool)>) override {}
};

// Feeds a parser and keeps every batch to the end, so that a view into recycled memory shows.
class Feed {
 public:
  explicit Feed(ParseLimits limits = {}) : limits_(limits) {}

  void add(std::string_view bytes) {
    while (!bytes.empty() && error.empty()) {
      const auto room = parser.prepare(16 * 1024);
      const size_t n = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), n);
      parser.commit(n);
      bytes.remove_prefix(n);
      parse();
    }
  }

  void parse() {
    for (;;) {
      const auto status = parser.parse(limits_);
      if (parser.has_commands()) batches.push_back(parser.take_batch());
      if (status == RespParser::Status::kError) error = parser.error();
      if (status != RespParser::Status::kLargeArgument) break;
      large.push_back(parser.large_argument_bytes());
      parser.gather();
    }
    parser.release_if_empty();
  }

  Commands commands() const {
    Commands result;
    for (const BatchPtr& batch : batches) {
      for (const Command& command : batch->commands) {
        result.emplace_back(command.args.begin(), command.args.end());
      }
    }
    return result;
  }

  RespParser parser;
  std::vector<BatchPtr> batches;
  std::vector<uint64_t> large;
  std::string error;

 private:
  const ParseLimits limits_;
};

std::string encode(const Args& args) {
  std::string result = "*" + std::to_string(args.size()) + "\r\n";
  for (const std::string& arg : args) {
    result += "$" + std::to_string(arg.size()) + "\r\n" + arg + "\r\n";
  }
  return result;
}

// An inline form with everything escaped that can be.
std::string encode_inline(const Args& args) {
  static const char* const kHex = "0123456789abcdef";
  std::string result;
  for (const std::string& arg : args) {
    result += '"';
    for (const char c : arg) {
      const auto byte = static_cast<unsigned char>(c);
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    result += "\" ";
  }
  return result + "\r\n";
}

std::string random_bytes(std::mt19937_64& random, size_t bytes) {
  std::string result(bytes, '\0');
  for (char& c : result) c = static_cast<char>(random());
  return result;
}

// What Redis takes for no command at all.
constexpr std::array kPassedOver = {"\r\n", "*0\r\n", "*-1\r\n", " \n"};

struct Stream {
  std::string bytes;
  Commands commands;
};

Stream random_stream(std::mt19937_64& random, int commands, size_t arg_bytes_max) {
  Stream stream;
  for (int i = 0; i < commands; ++i) {
    Args args(1 + random() % 5);
    for (std::string& arg : args) arg = random_bytes(random, random() % (arg_bytes_max + 1));
    // A line has 64 KB at most.
    const bool may_be_inline = arg_bytes_max < 1000;
    stream.bytes += may_be_inline && random() % 4 == 0 ? encode_inline(args) : encode(args);
    stream.commands.push_back(std::move(args));
    if (random() % 4 == 0) stream.bytes += kPassedOver[random() % kPassedOver.size()];
  }
  return stream;
}

TEST_CASE("every split point gives the same commands", "[parser]") {
  const std::string bytes = encode({"SET", "key", std::string("\r\n\0$*", 5)}) + "PING\r\n" +
                            "*0\r\n" + "\r\n" + "ECHO 'a b' \"\\x00c\"\n" + "*-10\r\n" +
                            encode({"", "", "x"}) + encode({"GET", std::string(300, 'k')});
  const Commands expected = {{"SET", "key", std::string("\r\n\0$*", 5)},
                             {"PING"},
                             {"ECHO", "a b", std::string("\0c", 2)},
                             {"", "", "x"},
                             {"GET", std::string(300, 'k')}};
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); second += 7) {
      Feed feed;
      feed.add(std::string_view(bytes).substr(0, first));
      feed.add(std::string_view(bytes).substr(first, second - first));
      feed.add(std::string_view(bytes).substr(second));
      REQUIRE(feed.error == "");
      REQUIRE(feed.commands() == expected);
      REQUIRE(feed.parser.capacity() == 0);
    }
  }
}

TEST_CASE("one byte at a time", "[parser]") {
  std::mt19937_64 random(7);
  const Stream stream = random_stream(random, 60, 40);
  Feed feed;
  for (const char c : stream.bytes) feed.add({&c, 1});
  CHECK(feed.error == "");
  CHECK(feed.commands() == stream.commands);
  CHECK(feed.parser.capacity() == 0);
}

TEST_CASE("random commands in random fragments", "[parser]") {
  const auto seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  std::mt19937_64 random(seed);
  const Stream stream = random_stream(random, 300, seed % 2 == 0 ? 30 : 40'000);
  Feed feed;
  for (size_t at = 0; at < stream.bytes.size();) {
    const size_t n = 1 + random() % (seed % 3 == 0 ? 50 : 30'000);
    feed.add(std::string_view(stream.bytes).substr(at, n));
    at += n;
  }
  INFO("seed " << seed);
  CHECK(feed.error == "");
  CHECK((feed.commands() == stream.commands));
}

TEST_CASE("a pipeline that arrives at once is one batch, without copies", "[parser]") {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += encode({"SET", std::to_string(i), "value"});
  Feed feed;
  feed.add(bytes);
  REQUIRE(feed.batches.size() == 1);
  const CommandBatch& batch = *feed.batches[0];
  REQUIRE(batch.commands.size() == 200);
  CHECK(batch.bytes() >= bytes.size());
  for (const Command& command : batch.commands) {
    for (const std::string_view arg : command.args) {
      REQUIRE(arg.data() >= batch.buffer.get());
      REQUIRE(arg.data() + arg.size() <= batch.buffer.get() + batch.buffer_capacity);
    }
  }
}

TEST_CASE("very many arguments in small pieces", "[parser]") {
  const Args args(100'000, "x");
  const std::string bytes = encode(args);
  Feed feed;
  for (size_t at = 0; at < bytes.size(); at += 5000) {
    feed.add(std::string_view(bytes).substr(at, 5000));
  }
  REQUIRE(feed.batches.size() == 1);
  CHECK((feed.commands() == Commands{args}));
}

TEST_CASE("very many arguments are not copied each time that some more come", "[parser]") {
  const std::string bytes = encode(Args(20'000, std::string(300, 'x')));
  Feed feed;
  size_t moves = 0;
  for (size_t at = 0; at < bytes.size(); at += 5000) {
    const size_t before = feed.parser.capacity();
    feed.add(std::string_view(bytes).substr(at, 5000));
    moves += feed.parser.capacity() != before;
  }
  CHECK(moves < 40);
  CHECK(feed.commands().size() == 1);
}

TEST_CASE("memory follows what came, not what was announced", "[parser]") {
  Feed feed;
  feed.add("*2\r\n$3\r\nSET\r\n$500000000\r\n");
  CHECK(feed.large == std::vector<uint64_t>{500'000'000});
  CHECK(feed.parser.capacity() < 64 * 1024);
  size_t sent = 0;
  const std::string piece(10'000, 'v');
  for (int i = 0; i < 1000; ++i) {
    feed.add(piece);
    sent += piece.size();
    REQUIRE(feed.parser.held_bytes() >= sent);
    REQUIRE(feed.parser.capacity() <= 2 * sent + 64 * 1024);
  }
  CHECK(feed.commands().empty());

  Feed many;
  many.add("*2147483647\r\n$4\r\nMSET\r\n");
  CHECK(many.parser.capacity() < 64 * 1024);
}

TEST_CASE("a large argument is gathered when nobody sinks it", "[parser]") {
  std::mt19937_64 random(3);
  const std::string large = random_bytes(random, 3'000'000);
  const std::string bytes =
      encode({"PING"}) + encode({"SET", "k", large, large}) + encode({"PING"});
  Feed feed;
  for (size_t at = 0; at < bytes.size(); at += 16'000) {
    feed.add(std::string_view(bytes).substr(at, 16'000));
  }
  CHECK(feed.error == "");
  CHECK(feed.large.size() == 2);
  CHECK((feed.commands() == Commands{{"PING"}, {"SET", "k", large, large}, {"PING"}}));
}

TEST_CASE("a diverted argument leaves the stream", "[parser]") {
  RespParser parser;
  const auto add = [&](std::string_view bytes) {
    const auto room = parser.prepare(16 * 1024);
    REQUIRE(bytes.size() <= room.size());
    std::memcpy(room.data(), bytes.data(), bytes.size());
    parser.commit(bytes.size());
  };
  add("*4\r\n$3\r\nPUT\r\n$1\r\nk\r\n$2000000\r\nabc");
  REQUIRE(parser.parse({}) == RespParser::Status::kLargeArgument);
  REQUIRE(parser.parse({}) == RespParser::Status::kLargeArgument);
  CHECK(parser.large_argument_bytes() == 2'000'000);
  const auto before = parser.arguments_so_far();
  CHECK(Args(before.begin(), before.end()) == Args{"PUT", "k"});
  const auto sink = std::make_shared<CountingSink>();
  parser.divert(sink);
  std::string taken = "=";
  CHECK(parser.take_raw(2'000'000, taken) == 3);
  CHECK(taken == "=abc");
  CHECK(parser.parse({}) == RespParser::Status::kNeedMore);
  add("\r");
  CHECK(parser.parse({}) == RespParser::Status::kNeedMore);
  // A second large argument of the same command is not offered.
  const std::string large(2'000'000, 'z');
  add("\n$2000000\r\n");
  for (size_t at = 0; at < large.size();) {
    const auto room = parser.prepare(16 * 1024);
    const size_t n = std::min(room.size(), large.size() - at);
    std::memcpy(room.data(), large.data() + at, n);
    parser.commit(n);
    at += n;
    REQUIRE(parser.parse({}) == RespParser::Status::kNeedMore);
  }
  add("\r\nPING\r\n");
  REQUIRE(parser.parse({}) == RespParser::Status::kNeedMore);
  const BatchPtr batch = parser.take_batch();
  REQUIRE(batch->commands.size() == 2);
  const Command& put = batch->commands[0];
  CHECK(put.sink == sink);
  CHECK(put.diverted_index == 2);
  REQUIRE(put.args.size() == 4);
  CHECK(put.args[1] == "k");
  CHECK(put.args[2].empty());
  CHECK((put.args[3] == large));
  CHECK(batch->commands[1].sink == nullptr);
}

TEST_CASE("a refused command is passed over up to its end", "[parser]") {
  const std::string large(300'000, 'x');
  const std::string refused = encode({"HSET", "k", "f", large, "g", large});
  const std::string bytes = encode({"ECHO", "a"}) + refused + encode({"ECHO", "b"});
  const size_t step = GENERATE(7u, 5'000u, 16'000u);
  const size_t refused_from = GENERATE(60u, 50'000u, 400'000u);
  Feed feed;
  for (size_t at = 0; at < bytes.size(); at += step) {
    feed.add(std::string_view(bytes).substr(at, step));
    if (at >= refused_from && at < bytes.size() - 100) {
      feed.parser.refuse();
      REQUIRE(feed.parser.capacity() <= 40 * 1024);
    }
  }
  CHECK(feed.error == "");
  REQUIRE(feed.commands() == Commands{{"ECHO", "a"}, {"HSET"}, {"ECHO", "b"}});
  std::vector<bool> flags;
  for (const BatchPtr& batch : feed.batches) {
    for (const Command& command : batch->commands) flags.push_back(command.refused);
  }
  CHECK(flags == std::vector<bool>{false, true, false});
  CHECK(feed.parser.capacity() == 0);
}

TEST_CASE("a command may be refused anywhere, and the next is read right", "[parser]") {
  const auto seed = GENERATE(range(1u, 40u));
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const Stream stream = random_stream(random, 60, seed % 2 == 0 ? 30 : 5'000);
  Feed feed;
  for (size_t at = 0; at < stream.bytes.size();) {
    const size_t n = 1 + random() % (seed % 3 == 0 ? 20 : 3'000);
    feed.add(std::string_view(stream.bytes).substr(at, n));
    at += n;
    if (random() % 4 == 0) feed.parser.refuse();
  }
  CHECK(feed.error == "");
  size_t number = 0;
  for (const BatchPtr& batch : feed.batches) {
    for (const Command& command : batch->commands) {
      REQUIRE(number < stream.commands.size());
      const Args& sent = stream.commands[number++];
      const Args got(command.args.begin(), command.args.end());
      if (command.refused) {
        REQUIRE(got.size() == 1);
        REQUIRE((got[0].empty() || got[0] == sent[0]));
      } else {
        REQUIRE(got == sent);
      }
    }
  }
  CHECK(number == stream.commands.size());
  CHECK(feed.parser.capacity() == 0);
}

TEST_CASE("damaged input is read the same however it is cut", "[parser]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes = random_stream(random, 1 + static_cast<int>(random() % 4), 20).bytes;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      constexpr std::string_view kTelling = "*$\r\n-0129 \"'\\x";
      const char c =
          random() % 2 == 0 ? kTelling[random() % kTelling.size()] : static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          bytes.erase(at, 1 + random() % 3);
          if (bytes.empty()) bytes = "*";
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        default:
          bytes[at] = c;
      }
    }
    Feed whole;
    whole.add(bytes);
    Feed pieces;
    for (size_t at = 0; at < bytes.size() && pieces.error.empty();) {
      const size_t n = 1 + random() % 9;
      pieces.add(std::string_view(bytes).substr(at, n));
      at += n;
    }
    REQUIRE(pieces.error == whole.error);
    REQUIRE(pieces.commands() == whole.commands());
  }
}

TEST_CASE("a refused command whose name is too long has none", "[parser]") {
  Feed feed;
  feed.add("*2\r\n$2000000\r\nxxx");
  feed.parser.refuse();
  feed.add(std::string(1'999'997, 'x') + "\r\n$1\r\ny\r\nPING\r\n");
  CHECK(feed.error == "");
  CHECK(feed.commands() == Commands{{""}, {"PING"}});
}

TEST_CASE("an argument just below the threshold is not offered", "[parser]") {
  Feed feed;
  feed.add(encode({"SET", std::string(kLargeArgumentBytes - 1, 'x')}));
  CHECK(feed.large.empty());
  CHECK(feed.commands().size() == 1);
  // The command's name is nobody's value.
  Feed name;
  name.add(encode({std::string(kLargeArgumentBytes, 'x'), "y"}));
  CHECK(name.large.empty());
  CHECK(name.commands().size() == 1);
}

TEST_CASE("protocol errors are those of Redis", "[parser]") {
  const auto error_of = [](const std::string& bytes, bool byte_by_byte) {
    Feed feed;
    feed.add("PING\r\n");
    for (size_t at = 0; at < bytes.size(); ++at) {
      feed.add(std::string_view(bytes).substr(at, byte_by_byte ? 1 : std::string::npos));
      if (!byte_by_byte) break;
    }
    CHECK(feed.commands() == Commands{{"PING"}});
    return feed.error;
  };
  const std::string prefix = "ERR Protocol error: ";
  for (const bool byte_by_byte : {false, true}) {
    for (const char* bytes : {"*abc\r\n", "*01\r\n", "*-0\r\n", "*\r\n", "*+1\r\n", "* 1\r\n",
                              "*1 \r\n", "*2147483648\r\n", "*99999999999999999999\r\n"}) {
      INFO(bytes);
      CHECK(error_of(bytes, byte_by_byte) == prefix + "invalid multibulk length");
    }
    for (const char* bytes : {"*1\r\n$-1\r\n", "*1\r\n$03\r\n", "*1\r\n$x\r\n", "*1\r\n$\r\n",
                              "*1\r\n$536870913\r\n", "*1\r\n$99999999999999999999\r\n"}) {
      INFO(bytes);
      CHECK(error_of(bytes, byte_by_byte) == prefix + "invalid bulk length");
    }
    CHECK(error_of("*1\r\nx4\r\n", byte_by_byte) == prefix + "expected '$', got 'x'");
    CHECK(error_of("ECHO \"a\r\n", byte_by_byte) == prefix + "unbalanced quotes in request");
    CHECK(error_of("ECHO 'a'b\r\n", byte_by_byte) == prefix + "unbalanced quotes in request");
  }
}

TEST_CASE("lines have 64 KB", "[parser]") {
  const auto error_of = [](const std::string& bytes) {
    Feed feed;
    feed.add(bytes);
    return feed.error;
  };
  const std::string prefix = "ERR Protocol error: ";
  CHECK(error_of(std::string(65536, 'x')) == "");
  CHECK(error_of(std::string(65537, 'x')) == prefix + "too big inline request");
  CHECK(error_of("*" + std::string(65535, '1')) == "");
  CHECK(error_of("*" + std::string(65536, '1')) == prefix + "too big mbulk count string");
  CHECK(error_of("*1\r\n$" + std::string(65535, '1')) == "");
  CHECK(error_of("*1\r\n$" + std::string(65536, '1')) == prefix + "too big bulk count string");
}

TEST_CASE("what Redis lets pass", "[parser]") {
  Feed feed;
  feed.add("*1\r\n$4\r\nPINGxx*1\rX$4\rYPINGzz*2147483647\r\n");
  CHECK(feed.error == "");
  CHECK(feed.commands() == Commands{{"PING"}, {"PING"}});
}

TEST_CASE("limits of clients that are not authenticated", "[parser]") {
  const ParseLimits strict{.authenticated = false};
  const auto error_of = [&](const std::string& bytes) {
    Feed feed(strict);
    feed.add(bytes);
    return feed.error;
  };
  CHECK(error_of("*10\r\n") == "");
  CHECK(error_of("*11\r\n") == "ERR Protocol error: unauthenticated multibulk length");
  CHECK(error_of("*1\r\n$16384\r\n") == "");
  CHECK(error_of("*1\r\n$16385\r\n") == "ERR Protocol error: unauthenticated bulk length");

  // The error is not final: the command before it may have been AUTH.
  Feed feed(strict);
  feed.add("*11\r\n$4\r\nMSET\r\n");
  CHECK(feed.parser.parse({.authenticated = true}) == RespParser::Status::kNeedMore);
  CHECK(feed.parser.error() == "");
  CHECK(feed.parser.arguments_so_far().size() == 1);
}

TEST_CASE("the bulk limit is the server's setting", "[parser]") {
  Feed feed({.bulk_bytes_max = 100});
  feed.add(encode({"ECHO", std::string(100, 'x')}));
  CHECK(feed.error == "");
  feed.add(encode({"ECHO", std::string(101, 'x')}));
  CHECK(feed.error == "ERR Protocol error: invalid bulk length");
  CHECK(feed.commands().size() == 1);
}

}  // namespace
}  // namespace ingot::net
