// Numbers and options as Redis reads them.
#include "src/contract/args.h"

#include <catch2/catch.hpp>

using namespace ingot::contract;

TEST_CASE("integers are taken only in the form that Redis prints", "[args]") {
  CHECK(parse_integer("0") == 0);
  CHECK(parse_integer("-1") == -1);
  CHECK(parse_integer("9223372036854775807") == INT64_MAX);
  CHECK(parse_integer("-9223372036854775808") == INT64_MIN);
  for (std::string_view wrong :
       {"", "-", "+1", "01", "-0", " 1", "1 ", "1a", "0x1", "1.0", "9223372036854775808",
        "-9223372036854775809", "100000000000000000000"}) {
    INFO(wrong);
    CHECK_FALSE(parse_integer(wrong));
  }
}

TEST_CASE("floats", "[args]") {
  CHECK(parse_long_double("3.5") == 3.5L);
  CHECK(parse_long_double("-1e3") == -1000.0L);
  CHECK(parse_long_double("inf").has_value());
  for (std::string_view wrong : {"", " 1", "1 ", "nan", "abc", "1.5x"}) {
    INFO(wrong);
    CHECK_FALSE(parse_long_double(wrong));
    CHECK_FALSE(parse_double(wrong));
  }
}

TEST_CASE("the first error of a command line stays", "[args]") {
  std::string_view line[] = {"cmd", "x", "7", "EX", "nine"};
  ArgReader args(line);
  CHECK(args.text() == "x");
  CHECK(args.integer() == 7);
  CHECK(args.word("ex"));
  CHECK_FALSE(args.failed());
  args.integer();
  CHECK(args.error() == error::kNotInteger);
  args.text();  // past the end: a later error
  CHECK(args.error() == error::kNotInteger);
  CHECK_FALSE(args.done());
}

TEST_CASE("what is left over is a syntax error", "[args]") {
  std::string_view line[] = {"cmd", "a", "b"};
  ArgReader args(line);
  CHECK(args.text() == "a");
  CHECK_FALSE(args.word("c"));
  CHECK_FALSE(args.done());
  CHECK(args.error() == error::kSyntax);
}
