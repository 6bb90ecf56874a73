// Redis' glob patterns, with its corner cases.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "src/contract/glob.h"

namespace ingot::contract {
namespace {

using std::string_view_literals::operator""sv;

struct Match {
  std::string_view pattern;
  std::string_view text;
  bool expected;
};

TEST_CASE("globs match as in Redis", "[glob]") {
  constexpr Match kMatches[] = {
      {"hello", "hello", true},
      {"hello", "hell", false},
      {"hello", "helloo", false},
      {"h?llo", "hallo", true},
      {"h?llo", "hllo", false},
      {"h*llo", "hllo", true},
      {"h*llo", "heeello", true},
      {"*", "anything", true},
      {"***a", "bca", true},
      {"a*", "a", true},
      {"a**", "a", true},
      {"*a*b*c*", "xxaxxbxxcxx", true},
      {"*a*b*c*", "xxaxxcxxbxx", false},
      {"*ab", "aab", true},
      {"*abc", "ababc", true},
      {"h[ae]llo", "hello", true},
      {"h[ae]llo", "hillo", false},
      {"h[^e]llo", "hallo", true},
      {"h[^e]llo", "hello", false},
      {"h[a-e]llo", "hcllo", true},
      {"h[e-a]llo", "hcllo", true},
      {"[a-]", "b", false},  // the range reaches to the bracket, and the class has no end
      {"[a-]", "]", true},
      {"[a-]", "_", true},
      {"[\\]]", "]", true},
      {"[\\a]", "a", true},
      {"[abc", "b", true},  // without an end
      {"[", "a", false},
      {"[^", "a", true},
      {"[^]", "a", true},
      {"[]", "a", false},
      {"[]a]", "a]", false},  // the first bracket closes
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\", "a\\", true},
      {"a[", "a", false},
      {"[\xf0-\xff]k", "\xffk", true},
      {"\0*"sv, "\0k"sv, true},
      {"?", "\0"sv, true},
      {"", "", true},
      {"", "a", false},
      {"*", "", false},  // the walks of KEYS and SCAN take "*" for all keys themselves
      {"?", "", false},
      {"Ab", "aB", false},
  };
  for (const Match& match : kMatches) {
    INFO(match.pattern << " on " << match.text);
    CHECK(glob_matches(match.pattern, match.text) == match.expected);
  }
}

TEST_CASE("globs may ignore case", "[glob]") {
  CHECK(glob_matches("Ab[C-E]*", "aBdx", true));
  CHECK_FALSE(glob_matches("Ab[C-E]*", "aBfx", true));
}

TEST_CASE("a hostile pattern takes no exponential time", "[glob]") {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  CHECK_FALSE(glob_matches(pattern + "b", std::string(5000, 'a')));
}

TEST_CASE("the literal beginning of a pattern", "[glob]") {
  CHECK(literal_prefix("user:1:*").text == "user:1:");
  CHECK_FALSE(literal_prefix("user:1:*").is_whole);
  CHECK(literal_prefix("us\\*r?").text == "us*r");
  CHECK(literal_prefix("[ab]c").text.empty());
  CHECK(literal_prefix("plain").text == "plain");
  CHECK(literal_prefix("plain").is_whole);
  CHECK(literal_prefix("end\\").text == "end\\");
  CHECK(literal_prefix("").is_whole);
}

}  // namespace
}  // namespace ingot::contract
