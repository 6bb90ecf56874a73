// Redis' dumps: bytes that a redis-server 7.0 made, forms that only earlier ones made, and broken
// ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_listpack.h"
#include "src/types/rdb/rdb_lzf.h"
#include "src/types/rdb/rdb_object.h"

namespace ingot::types::rdb {
namespace {

using namespace std::string_literals;

// In hex, as DUMP of redis-server 7.0.15 answered.
constexpr std::string_view kListDump =
    "120102c317390f3900000004008161020101ded402a878e01e000129ff0a007d189d9e844cbf1f";
constexpr std::string_view kIntsetDump =
    "0b1404000000030000000100000002000000701101000a0085d5c1065b1dd055";
constexpr std::string_view kSortedSetDump =
    "111d1d0000000600816302842d696e6605816102010181620283322e3504ff0a003992339be11f323d";
constexpr std::string_view kHashDump =
    "1012120000000400816602817602816e020c01ff0a0001369481d35b8974";
constexpr std::string_view kStringDump = "000568656c6c6f0a006372df766534200a";
constexpr std::string_view kCompressedDump = "00c3094064017a7ae05700017a7a0a0096f7dc87fefd1ce4";
constexpr std::string_view kIntegerDump = "00c17fff0a001760822854808480";

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::optional<Object> decode_body(std::string body) {
  seal_payload(&body);
  REQUIRE(payload_intact(body));
  return decode_payload(body);
}

// A string as RDB has it, not compressed.
std::string raw(std::string_view bytes) {
  std::string out;
  append_length(&out, bytes.size());
  return out.append(bytes);
}

// A ziplist of short texts.
std::string ziplist(const std::vector<std::string>& items) {
  std::string entries;
  size_t before = 0, tail = 10;
  for (const std::string& item : items) {
    tail = 10 + entries.size();
    const std::string entry =
        std::string(1, static_cast<char>(before)) + static_cast<char>(item.size()) + item;
    before = entry.size();
    entries += entry;
  }
  std::string out;
  append_le(&out, 11 + entries.size(), 4);
  append_le(&out, tail, 4);
  append_le(&out, items.size(), 2);
  return out + entries + "\xff";
}

}  // namespace

TEST_CASE("rdb: what Redis dumped is read, and made again byte for byte", "[rdb]") {
  const std::vector<std::pair<std::string_view, Object>> dumps = {
      {kStringDump, String("hello")},
      {kCompressedDump, String(100, 'z')},
      {kIntegerDump, String("-129")},
      {kListDump, List{"a", "1", "-300", std::string(40, 'x')}},
      {kIntsetDump, Set{.members = {"1", "2", "70000"}, .compact = true}},
      {kSortedSetDump,
       SortedSet{.members = {{"c", -HUGE_VAL}, {"a", 1}, {"b", 2.5}}, .compact = true}},
      {kHashDump, Hash{.fields = {{"f", "v"}, {"n", "12"}}, .compact = true}},
  };
  for (const auto& [hex, object] : dumps) {
    const std::string payload = bytes_of(hex);
    REQUIRE(payload_intact(payload));
    CHECK(decode_payload(payload) == object);
    CHECK(encode_payload(object) == payload);
  }
}

TEST_CASE("rdb: forms of earlier versions", "[rdb]") {
  CHECK(decode_body("\x01\x02" + raw("a") + raw("b")) == Object(List{"a", "b"}));
  CHECK(decode_body("\x0a" + raw(ziplist({"a", "bc"}))) == Object(List{"a", "bc"}));
  CHECK(decode_body("\x0e\x02" + raw(ziplist({"a"})) + raw(ziplist({"b", "c"}))) ==
        Object(List{"a", "b", "c"}));
  CHECK(decode_body("\x0d" + raw(ziplist({"f", "v"}))) ==
        Object(Hash{.fields = {{"f", "v"}}, .compact = true}));
  CHECK(decode_body("\x0c" + raw(ziplist({"b", "2.5", "a", "-inf"}))) ==
        Object(SortedSet{.members = {{"a", -HUGE_VAL}, {"b", 2.5}}, .compact = true}));
  CHECK(decode_body("\x09" + raw("\x01\x01"
                                 "f\x02\x03vw---\xff"s)) == Object(Hash{.fields = {{"f", "vw"}}}));
  CHECK(decode_body("\x03\x02" + raw("a") +
                    "\x03"
                    "1.5" +
                    raw("b") + "\xff") ==
        Object(SortedSet{.members = {{"b", -HUGE_VAL}, {"a", 1.5}}}));
  CHECK(decode_body("\x02\x02" + raw("a") + raw("b")) == Object(Set{.members = {"a", "b"}}));
  // Integers in a ziplist: 8, 16, 24, 32 and 64 bits, and four of them beside the first byte.
  std::string integers =
      "\x2b\0\0\0\x23\0\0\0\x06\0"
      "\0\xfe\xff\x03\xc0\0\x80\x04\xf0\0\0\x80"
      "\x05\xd0\0\0\0\x80\x06\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x0a\xfd\xff"s;
  integers[4] = static_cast<char>(integers.size() - 3);
  integers[0] = static_cast<char>(integers.size());
  CHECK(decode_body("\x0a" + raw(integers)) ==
        Object(List{"-1", "-32768", "-8388608", "-2147483648", "9223372036854775807", "12"}));
}

TEST_CASE("rdb: what makes no sense is refused", "[rdb]") {
  CHECK_FALSE(payload_intact(""));
  std::string wrong = bytes_of(kStringDump);
  wrong.back() ^= 1;
  CHECK_FALSE(payload_intact(wrong));
  for (const std::string& body : {
           ""s,
           "\x01\0"s,  // empty collections
           "\x02\0"s,
           "\x12\0"s,
           "\x02\x02" + raw("a") + raw("a"),  // a member twice
           "\x04\x02" + raw("a") + raw("1") + raw("a") + raw("2"),
           "\x05\x01" + raw("a") + "\0\0\0\0\0\0\xf8\x7f"s,  // not a number
           "\x07\x01"s,                                      // a module's
           "\x0b" + raw("\x03\0\0\0\0\0\0\0"s),
           "\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff"s,
           "\x00\xc3\x02\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x00"
           "a"s,
           "\x01\x81\x7f\xff\xff\xff\xff\xff\xff\xff"s,
       }) {
    CHECK(decode_body(body) == std::nullopt);
  }
}

TEST_CASE("rdb: a long string's dump is made while it passes by", "[rdb]") {
  const std::string text(100'000, 'l');
  LongStringDump dump(text.size());
  std::string payload = dump.head();
  for (size_t at = 0; at < text.size(); at += 30'000) {
    const std::string_view piece = std::string_view(text).substr(at, 30'000);
    dump.pass(piece);
    payload += piece;
  }
  payload += dump.footer();
  CHECK(payload.size() == dump.bytes());
  CHECK((payload == encode_payload(text, {.compress = false})));
}

TEST_CASE("rdb: compressed strings come to no more than they may", "[rdb]") {
  const std::string bomb =
      encode_payload(Hash{{{"f", std::string(1 << 20, 'a')}, {"g", std::string(1 << 20, 'b')}}});
  REQUIRE(bomb.size() < 30'000);
  bool too_large = false;
  CHECK(decode_payload(bomb, 3 << 20, &too_large));
  CHECK_FALSE(too_large);
  CHECK_FALSE(decode_payload(bomb, (1 << 20) + 1000, &too_large));
  CHECK(too_large);
}

TEST_CASE("rdb: what many short strings take is counted, too", "[rdb]") {
  constexpr size_t kStrings = 10'000;
  const auto many = std::vector<std::string>(kStrings, "1");
  Set numbers{.members = {}, .compact = GENERATE(true, false)};
  SortedSet sorted{.members = {}, .compact = numbers.compact};
  Hash hash{.fields = {}, .compact = numbers.compact};
  for (size_t i = 0; i < kStrings; ++i) {
    numbers.members.push_back(std::to_string(i));
    sorted.members.emplace_back(std::to_string(i), 1);
    hash.fields.emplace_back(std::to_string(i), "1");
  }
  for (const Object& object : {Object(List(many)), Object(numbers), Object(sorted), Object(hash)}) {
    const std::string payload = encode_payload(object);
    bool too_large = false;
    CHECK(decode_payload(payload, 150 * kStrings, &too_large));
    CHECK_FALSE(too_large);
    CHECK_FALSE(decode_payload(payload, 30 * kStrings, &too_large));
    CHECK(too_large);
  }
}

TEST_CASE("rdb: damaged payloads are refused or read, never more", "[rdb]") {
  std::vector<std::string> bodies;
  for (const std::string_view hex :
       {kStringDump, kCompressedDump, kListDump, kIntsetDump, kSortedSetDump, kHashDump}) {
    const std::string payload = bytes_of(hex);
    bodies.push_back(payload.substr(0, payload.size() - 10));
  }
  bodies.push_back("\x0e\x02" + raw(ziplist({"a"})) + raw(ziplist({"b", "c"})));
  bodies.push_back("\x09" + raw("\x01\x01"
                                "f\x02\x03vw---\xff"s));
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 50'000; ++i) {
    std::string body = bodies[random() % bodies.size()];
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % body.size();
      switch (random() % 4) {
        case 0:
          body.resize(std::max<size_t>(at, 1));
          break;
        case 1:
          body.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          body[at] = static_cast<char>(random());
      }
    }
    const std::optional<Object> object = decode_body(body);
    if (!object) continue;
    // What was read makes sense: written, it reads the same.
    const std::optional<Object> again = decode_payload(encode_payload(*object));
    REQUIRE(again);
    REQUIRE(again->index() == object->index());
  }
}

TEST_CASE("rdb: LZF gives back what it was given, whatever it was given before", "[rdb]") {
  std::mt19937 random(7);
  std::string text_before, packed_before;
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 3000, 'a');
    const unsigned letters = 1 + random() % 40;
    for (char& letter : text) letter = static_cast<char>('a' + random() % letters);
    std::string packed, unpacked;
    if (!lzf_compress(text, text.size(), &packed)) continue;
    REQUIRE(packed.size() <= text.size());
    REQUIRE(lzf_decompress(packed, text.size(), &unpacked));
    REQUIRE(unpacked == text);
    REQUIRE_FALSE(lzf_decompress(packed, text.size() + 1, &unpacked));
    REQUIRE_FALSE(lzf_decompress(packed, text.size() - 1, &unpacked));
    if (!text_before.empty()) {
      std::string again;
      REQUIRE(lzf_compress(text_before, text_before.size(), &again));
      REQUIRE(again == packed_before);
    }
    text_before = text;
    packed_before = packed;
  }
}

}  // namespace ingot::types::rdb
