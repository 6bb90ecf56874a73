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

TEST_CASE("a word with values is taken where they stand behind it", "[args]") {
  std::string_view line[] = {"cmd", "count", "2", "LIMIT"};
  ArgReader args(line);
  CHECK_FALSE(args.word("count", 3));
  CHECK(args.word("count", 1));
  CHECK(args.rest().size() == 2);
  CHECK(args.integer() == 2);
  CHECK_FALSE(args.word("limit", 1));
  CHECK(args.word("limit"));
  CHECK(args.done());
  CHECK_FALSE(args.word("limit"));
}

TEST_CASE("one word of several, and flags", "[args]") {
  std::string_view line[] = {"cmd", "Right", "xx", "NX", "xx", "left"};
  ArgReader args(line);
  CHECK_FALSE(args.choice<int>({{"up", 1}, {"down", 2}}));
  CHECK(args.choice<int>({{"left", 1}, {"right", 2}}) == 2);
  bool nx = false, xx = false, ch = false;
  int taken = 0;
  while (args.flag({{"nx", &nx}, {"xx", &xx}, {"ch", &ch}})) ++taken;
  CHECK(taken == 3);
  CHECK((nx && xx && !ch));
  CHECK(args.rest().front() == "left");
  args.fail("ERR first");
  CHECK_FALSE(args.choice<int>({{"left", 1}}));
  CHECK_FALSE(args.flag({{"left", &ch}}));
}

TEST_CASE("arguments behind their number", "[args]") {
  const ArgReader::CountErrors errors{.not_number = "ERR number", .too_few = "ERR few"};
  const auto count = [&](std::string_view number, size_t* keys) {
    const std::string_view line[] = {"cmd", number, "a", "b"};
    ArgReader args(line);
    *keys = args.counted(errors).size();
    return args.failed() ? args.error() : std::to_string(args.left());
  };
  size_t keys = 0;
  CHECK(count("1", &keys) == "1");
  CHECK(keys == 1);
  CHECK(count("2", &keys) == "0");
  CHECK(keys == 2);
  CHECK(count("3", &keys) == error::kSyntax);
  CHECK(keys == 0);
  CHECK(count("0", &keys) == "ERR few");
  CHECK(count("-1", &keys) == "ERR few");
  CHECK(count("x", &keys) == "ERR number");
}
