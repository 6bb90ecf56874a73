// Strings on disk, on every engine: inline and chunked, in place, against a plain string.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "src/types/string_value.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

using storage::kInlineStringMax;
using storage::kStringChunkBytes;
using storage::Space;

// One key's string.
class OneString : public TypedStore {
 public:
  using TypedStore::TypedStore;

  void set(std::string_view value, int64_t expire_ms = 0) {
    Record old;
    const bool found = keys().peek(0, kKey, &old);
    store_string(keys(), 0, kKey, found ? &old : nullptr, value, expire_ms);
  }
  void write(uint64_t offset, std::string_view bytes) {
    Record old;
    const bool found = keys().peek(0, kKey, &old);
    write_string(keys(), 0, kKey, found ? &old : nullptr, offset, bytes);
  }
  void append(std::string_view bytes) { write(length(), bytes); }
  uint64_t length() { return exists() ? string_length(record()) : 0; }
  std::string read(uint64_t offset, uint64_t bytes) {
    std::string out;
    read_string(overlay(), record(), offset, bytes, &out);
    CHECK_FALSE(overlay().failed());
    return out;
  }
  std::string all() { return read(0, length()); }
  // The same by a cursor over the committed chunks.
  std::string all_by_cursor() {
    const storage::CollectionId id = record().collection()->id;
    std::string out(length(), '\0');
    ChunkReader reader(
        overlay().cursor(Space::kData, storage::collection_begin(id), storage::collection_end(id)),
        chunks_of(record()));
    reader.read(0, out);
    CHECK(reader.status().ok());
    return out;
  }
  std::string_view encoding() { return string_encoding(record()); }
  size_t changed() { return overlay().size(); }
};

std::string pattern(size_t bytes, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

TEST_CASE("a string is inline up to the limit and chunked beyond", "[string]") {
  OneString string(each_engine());
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{kInlineStringMax}}) {
    string.set(pattern(bytes));
    CHECK_FALSE(string.record().collection());
    CHECK((string.all() == pattern(bytes)));
  }
  for (size_t bytes : {kInlineStringMax + 1, 2 * kStringChunkBytes - 1, 2 * kStringChunkBytes,
                       2 * kStringChunkBytes + 1, 100'000u}) {
    string.set(pattern(bytes));
    REQUIRE(string.record().collection());
    CHECK(string.length() == bytes);
    CHECK((string.all() == pattern(bytes)));
    string.commit();
    CHECK((string.all() == pattern(bytes)));
    CHECK((string.all_by_cursor() == pattern(bytes)));
  }
}

TEST_CASE("overwriting drops the chunks", "[string]") {
  OneString string(each_engine());
  string.set(pattern(50'000));
  const auto id = string.record().collection()->id;
  string.append("x");
  CHECK(string.record().collection()->id == id);
  CHECK(string.effects().dropped_collections.empty());
  string.set("small");
  CHECK_FALSE(string.record().collection());
  CHECK(string.effects().dropped_collections == std::vector{id});
}

TEST_CASE("a change in place writes only the chunks it touches", "[string]") {
  OneString string(each_engine());
  string.set(pattern(1'000'000));
  string.commit();
  const auto before = *string.record().collection();
  string.write(500'000, "x");
  CHECK(string.changed() == 2);  // a chunk and the metadata
  CHECK(string.record().collection()->revision == before.revision + 1);
  CHECK(string.record().collection()->id == before.id);
  string.commit();
  string.append(pattern(10));
  CHECK(string.changed() == 2);
  string.commit();
  string.write(kStringChunkBytes - 1, "xy");
  CHECK(string.changed() == 3);
  string.commit();
  string.write(400'000'000, "far");
  CHECK(string.changed() == 2);
  CHECK(string.length() == 400'000'003);
  CHECK(string.read(399'999'998, 5) == std::string("\0\0far", 5));
  CHECK((string.read(200'000'000, 40'000) == std::string(40'000, '\0')));
}

TEST_CASE("a string that is changed in small parts has small chunks", "[string]") {
  OneString string(each_engine());
  std::string model = pattern(12'000);
  string.set(model);
  string.commit();
  const auto write = [&](size_t offset, const std::string& bytes) {
    string.write(offset, bytes);
    model.resize(std::max(model.size(), offset + bytes.size()));
    model.replace(offset, bytes.size(), bytes);
  };
  write(5'000, "x");
  CHECK(chunks_of(string.record()).bytes == 1024);
  CHECK(string.all() == model);
  string.commit();
  write(7 * 1024 - 1, "ab");
  CHECK(string.changed() == 3);  // two chunks and the metadata
  string.commit();
  CHECK(string.all() == model);
  CHECK(string.all_by_cursor() == model);
  SECTION("also where it is longer than one of them has to be") {
    write(100'000, std::string(30'000, 'y'));
    write(140'000, "z");
    string.commit();
    CHECK(string.all() == model);
    CHECK(string.all_by_cursor() == model);
    CHECK(string.record().payload() == "\x0a");
  }
  SECTION("one that grew by much at once has large ones") {
    string.set(pattern(10));
    string.write(10, pattern(20'000));
    CHECK(chunks_of(string.record()).bytes == kStringChunkBytes);
    CHECK(string.record().payload().empty());
  }
  SECTION("a short one stands inline") {
    string.set(pattern(4'000));
    string.append(pattern(96));
    CHECK_FALSE(string.record().collection());
    string.append("x");
    CHECK(string.record().collection());
  }
}

TEST_CASE("holes and short chunks read as zero bytes", "[string]") {
  OneString string(each_engine());
  string.write(3, "abc");
  CHECK(string.all() == std::string("\0\0\0abc", 6));
  CHECK_FALSE(string.record().collection());
  string.write(3 * kStringChunkBytes + 5, "xyz");
  REQUIRE(string.record().collection());
  std::string expected("\0\0\0abc", 6);
  expected.resize(3 * kStringChunkBytes + 5);
  expected += "xyz";
  CHECK((string.all() == expected));
  CHECK((string.all_by_cursor() == expected));
  string.write(10, "q");  // in the short chunk, behind its end
  expected[10] = 'q';
  CHECK((string.all() == expected));
  CHECK((string.read(kStringChunkBytes - 2, 4) == std::string(4, '\0')));
}

TEST_CASE("writing keeps the expiry, setting replaces it", "[string]") {
  OneString string(each_engine());
  string.set("v", 5000);
  string.append("w");
  CHECK(string.record().expire_ms() == 5000);
  string.append(pattern(20'000));
  CHECK(string.record().expire_ms() == 5000);
  string.set("v");
  CHECK(string.record().expire_ms() == 0);
}

TEST_CASE("encodings are those of Redis", "[string]") {
  OneString string(each_engine());
  auto encoding_of = [&](std::string_view value) {
    string.set(value);
    return string.encoding();
  };
  CHECK(encoding_of("0") == "int");
  CHECK(encoding_of("-1") == "int");
  CHECK(encoding_of("9223372036854775807") == "int");
  CHECK(encoding_of("-9223372036854775808") == "int");
  for (std::string_view text : {"", "-", "-0", "+1", "01", " 1", "1 ", "1.0", "9223372036854775808",
                                "-9223372036854775809", "123456789012345678901"}) {
    CHECK(encoding_of(text) == "embstr");
  }
  CHECK(encoding_of(std::string(44, 'a')) == "embstr");
  CHECK(encoding_of(std::string(45, 'a')) == "raw");
  CHECK(encoding_of(std::string(100'000, 'a')) == "raw");
  string.set("1");
  string.append("2");
  CHECK(string.encoding() == "raw");
  CHECK(encoding_of("12") == "int");
}

TEST_CASE("bytes that are no chunk are an error", "[string]") {
  OneString string(each_engine());
  string.set(pattern(40'000));
  const auto id = string.record().collection()->id;
  for (const std::string& bad : {std::string("\1abc"), std::string(kStringChunkBytes + 2, '\0')}) {
    string.overlay().put(Space::kData, storage::chunk_key(id, 1), bad);
    std::string out;
    read_string(string.keys().data(), string.record(), 0, 40'000, &out);
    CHECK(string.take_error().code() == storage::Status::Code::kCorruption);
    ChunkReader reader(string.overlay().cursor(Space::kData, storage::collection_begin(id),
                                               storage::collection_end(id)),
                       {.id = id});
    out.resize(40'000);
    reader.read(0, out);
    CHECK(reader.status().code() == storage::Status::Code::kCorruption);
  }
}

TEST_CASE("what a group has not committed is told apart", "[string]") {
  OneString string(each_engine());
  string.set(pattern(60'000));
  string.commit();
  string.write(20'000, "abc");
  const auto id = string.record().collection()->id;
  std::vector<std::string> keys;
  string.overlay().uncommitted(Space::kData, storage::collection_begin(id),
                               storage::collection_end(id),
                               [&](std::string_view key, std::string_view value) {
                                 keys.emplace_back(key);
                                 CHECK(value.substr(1 + 20'000 - kStringChunkBytes, 3) == "abc");
                               });
  CHECK(keys == std::vector{storage::chunk_key(id, 1)});
}

TEST_CASE("a string that came as a whole is cut smaller when it is changed often", "[string]") {
  OneString string(each_engine());
  std::string model = pattern(100'000);
  string.set(model);
  string.commit();
  const auto change = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const size_t offset = static_cast<size_t>(i) * 977 % model.size();
      string.write(offset, "x");
      model[offset] = 'x';
    }
    string.commit();
  };
  change(8 * 7);
  CHECK(chunks_of(string.record()).bytes == kStringChunkBytes);
  SECTION("by small parts") {
    change(1);
    CHECK(chunks_of(string.record()).bytes == 1024);
    change(100);
  }
  SECTION("and not by large ones") {
    string.write(1, std::string(2000, 'y'));
    model.replace(1, 2000, 2000, 'y');
    string.commit();
    CHECK(chunks_of(string.record()).bytes == kStringChunkBytes);
  }
  CHECK((string.all() == model));
  CHECK((string.all_by_cursor() == model));
  string.reopen();
  CHECK((string.all() == model));
}

TEST_CASE("random changes agree with a plain string", "[string]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  auto below = [&](size_t limit) { return random() % limit; };
  // Often near the borders of chunks.
  auto place = [&]() -> size_t {
    const size_t border = below(5) * kStringChunkBytes;
    return below(2) == 0 ? below(70'000) : border + below(7) - std::min<size_t>(border, 3);
  };
  OneString string(each_engine());
  std::string model;
  for (size_t step = 0; step < string.steps(3000); ++step) {
    const std::string bytes = pattern(below(3) == 0 ? below(40'000) : below(20), random());
    switch (below(8)) {
      case 0:
        if (below(4) != 0) break;
        string.set(bytes);
        model = bytes;
        break;
      case 1:
      case 2:
        if (model.size() > 150'000) break;
        string.append(bytes);
        model += bytes;
        break;
      case 3:
      case 4:
      case 5: {
        const size_t offset = place();
        if (bytes.empty()) break;
        string.write(offset, bytes);
        if (model.size() < offset + bytes.size()) model.resize(offset + bytes.size());
        model.replace(offset, bytes.size(), bytes);
        break;
      }
      case 6:
        below(30) == 0 ? string.reopen() : string.commit();
        break;
      default:
        break;
    }
    REQUIRE(string.length() == model.size());
    if (model.empty()) continue;
    const size_t offset = std::min(place(), model.size() - 1);
    const size_t length = below(model.size() - offset + 1);
    REQUIRE((string.read(offset, length) == model.substr(offset, length)));
  }
  string.reopen();
  CHECK((string.all() == model));
}

}  // namespace
}  // namespace ingot::types
