// Redis' quoting rules; every expectation was taken from a redis-server 7.0.
#include "net/inline_args.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace ingot::net {
namespace {

using Strings = std::vector<std::string>;

// The arguments, or {"unbalanced"}.
Strings split(std::string line) {
  std::vector<std::string_view> args;
  if (!split_inline(line.data(), line.data() + line.size(), args)) return {"unbalanced"};
  return {args.begin(), args.end()};
}

TEST_CASE("inline commands split at spaces", "[inline]") {
  CHECK(split("PING") == Strings{"PING"});
  CHECK(split("  SET  a\tb ") == Strings{"SET", "a", "b"});
  CHECK(split("") == Strings{});
  CHECK(split(" \t ") == Strings{});
  CHECK(split("\v\fPING") == Strings{"PING"});
  CHECK(split("ECHO a\vb") == Strings{"ECHO", "a\vb"});
  CHECK(split("ECHO a\rb") == Strings{"ECHO", "a", "b"});
  CHECK(split("\xff\xfe \x01") == Strings{"\xff\xfe", "\x01"});
}

TEST_CASE("double quotes unescape", "[inline]") {
  CHECK(split(R"(ECHO "a b")") == Strings{"ECHO", "a b"});
  CHECK(split(R"("")") == Strings{""});
  CHECK(split(R"("\x41\n\r\t\b\a\q\"\\")") == Strings{"A\n\r\t\b\aq\"\\"});
  CHECK(split(R"("\xZZ\x4")") == Strings{"xZZx4"});
  CHECK(split(R"("\x00\xfF")") == Strings{std::string("\0\xff", 2)});
  CHECK(split(R"(foo"bar baz")") == Strings{"foobar baz"});
  CHECK(split("'a'\v") == Strings{"a"});
}

TEST_CASE("single quotes know only their own escape", "[inline]") {
  CHECK(split(R"('a\'b\n')") == Strings{R"(a'b\n)"});
  CHECK(split("''") == Strings{""});
  CHECK(split(R"('say "x"')") == Strings{"say \"x\""});
}

TEST_CASE("unbalanced quotes are an error", "[inline]") {
  for (const char* line : {R"("a)", R"('a)", R"("a"b)", R"('a'b)", R"("a\)", R"("a\")", R"(')",
                           R"(SET a "b"c)", R"('a\')"}) {
    INFO(line);
    CHECK(split(line) == Strings{"unbalanced"});
  }
}

}  // namespace
}  // namespace ingot::net
