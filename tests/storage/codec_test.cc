// The bytes of format version 1: what is written is read again, and keys keep their order.
#include "storage/codec.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace ingot::storage;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

std::string random_bytes(std::mt19937& random, size_t longest) {
  std::string bytes(random() % (longest + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

TEST_CASE("the example of docs/format.md", "[codec]") {
  CHECK(hex(meta_key(0, "user:7")) == "00000000757365723a37");
  std::string record;
  encode_metadata({.payload = "hello"}, &record);
  CHECK(hex(record) == "0168656c6c6f");
  encode_metadata({.expire_ms = 1800000000000, .indexed_ms = 1800000000000, .payload = "hello"},
                  &record);
  CHECK(hex(record) ==
        "1100505c18a30100000050"
        "5c18a301000068656c6c6f");
}

TEST_CASE("metadata survives encoding", "[codec]") {
  auto type = GENERATE(ValueType::kString, ValueType::kList, ValueType::kSet, ValueType::kSortedSet,
                       ValueType::kHash, ValueType::kStream);
  bool limit_passed = GENERATE(false, true);
  bool text = GENERATE(false, true) && type != ValueType::kHash;
  int64_t expire_ms = GENERATE(0, 1, INT64_MAX);
  int64_t element_expire_ms = type == ValueType::kHash ? expire_ms / 3 : 0;
  bool large = GENERATE(false, true);
  Metadata before{.type = type,
                  .limit_passed = limit_passed,
                  .text = text,
                  .expire_ms = expire_ms,
                  .element_expire_ms = element_expire_ms,
                  .indexed_ms = expire_ms / 2};
  if (large) {
    before.collection = {.id = UINT64_MAX - 1, .count = 1ull << 40, .revision = 7};
  } else {
    before.payload = std::string_view("a\0b", 3);
  }
  std::string record;
  encode_metadata(before, &record);
  REQUIRE_FALSE(record.empty());
  Metadata after;
  REQUIRE(decode_metadata(record, &after));
  CHECK(after.type == before.type);
  CHECK(after.limit_passed == before.limit_passed);
  CHECK(after.text == before.text);
  CHECK(after.expire_ms == before.expire_ms);
  CHECK(after.element_expire_ms == before.element_expire_ms);
  CHECK(after.indexed_ms == before.indexed_ms);
  CHECK(after.payload == before.payload);
  REQUIRE(after.collection.has_value() == large);
  if (large) {
    CHECK(after.collection->id == before.collection->id);
    CHECK(after.collection->count == before.collection->count);
    CHECK(after.collection->revision == before.collection->revision);
  }
}

TEST_CASE("what is no record is refused", "[codec]") {
  Metadata metadata;
  CHECK_FALSE(decode_metadata("", &metadata));
  CHECK_FALSE(decode_metadata(std::string(1, '\0'), &metadata));           // no type 0
  CHECK_FALSE(decode_metadata("\x0f", &metadata));                         // no type 15
  CHECK_FALSE(decode_metadata("\x11short", &metadata));                    // expiry cut off
  CHECK_FALSE(decode_metadata("\x21" + std::string(19, 'x'), &metadata));  // collection cut off
  KeyCounts counts;
  CHECK_FALSE(decode_counts("short", &counts));
  ExpiryEntry entry;
  CHECK_FALSE(decode_expiry_key("short", &entry));
  GarbageKind kind;
  uint64_t id = 0;
  CHECK_FALSE(decode_garbage_key("x12345678", &kind, &id));
}

TEST_CASE("keys keep the order of what they are made of", "[codec]") {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    std::string a = random_bytes(random, 12);
    std::string b = random_bytes(random, 12);
    auto keyspace = static_cast<KeyspaceId>(random());
    CHECK((meta_key(keyspace, a) < meta_key(keyspace, b)) == (a < b));
    CHECK(user_key_of(meta_key(keyspace, a)) == a);
    CHECK(meta_key(keyspace, a) < meta_key_end(keyspace));
    int64_t sooner = static_cast<int64_t>(random());
    int64_t later = sooner + 1 + static_cast<int64_t>(random());
    CHECK(expiry_key(sooner, keyspace, b) < expiry_key(later, 0, a));
    CollectionId id = random();
    CHECK(collection_begin(id) <= chunk_key(id, 0));
    CHECK(chunk_key(id, 255) < chunk_key(id, 256));
    CHECK(chunk_key(id, UINT32_MAX) < collection_end(id));
  }
}

TEST_CASE("expiry, garbage and counts survive encoding", "[codec]") {
  ExpiryEntry entry;
  std::string expiry = expiry_key(1234567890123, 42, std::string_view("k\0y", 3));
  REQUIRE(decode_expiry_key(expiry, &entry));
  CHECK(entry.expire_ms == 1234567890123);
  CHECK(entry.keyspace == 42);
  CHECK(entry.user_key == std::string_view("k\0y", 3));
  GarbageKind kind;
  uint64_t id = 0;
  REQUIRE(decode_garbage_key(garbage_key(GarbageKind::kKeyspace, 65536), &kind, &id));
  CHECK(kind == GarbageKind::kKeyspace);
  CHECK(id == 65536);
  std::string record;
  encode_counts({.keys = 3, .expires = 1}, &record);
  KeyCounts counts;
  REQUIRE(decode_counts(record, &counts));
  CHECK(counts.keys == 3);
  CHECK(counts.expires == 1);
  CHECK(counts.settled);
  CHECK(counts.marked);
  encode_counts({.keys = UINT64_MAX, .expires = 2, .collections = 5, .settled = false}, &record);
  REQUIRE(decode_counts(record, &counts));
  CHECK(counts.keys == 0);  // less than nothing is not told
  CHECK(counts.collections == 5);
  CHECK_FALSE(counts.settled);
  // Version 1 knew no markers.
  REQUIRE(decode_counts(record.substr(0, 16), &counts));
  CHECK(counts.marked);  // of nothing
  encode_counts({.keys = 3, .expires = 1}, &record);
  REQUIRE(decode_counts(record.substr(0, 16), &counts));
  CHECK_FALSE(counts.marked);
}
