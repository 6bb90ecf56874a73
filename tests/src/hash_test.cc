// Hashes on disk, on every engine: small and large, against a plain model with the order of
// insertion, fields that expire included.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/types/collection.h"
#include "src/types/hash_value.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

using storage::Space;

// One key's hash.
class OneHash : public TypedStore {
 public:
  explicit OneHash(const std::string& engine, uint64_t inline_max = 100)
      : TypedStore(engine), inline_max_(inline_max) {}

  bool set(std::string_view field, std::string_view value, int64_t expire_ms = 0) {
    return change([&](HashWriter& hash) {
      return hash.set(field, {.bytes = value, .expire_ms = expire_ms});
    });
  }
  bool remove(std::string_view field) {
    return change([&](HashWriter& hash) { return hash.remove(field); });
  }
  std::vector<std::pair<std::string, std::string>> all() {
    std::vector<std::pair<std::string, std::string>> pairs;
    if (!exists()) return pairs;
    const Record found = record();
    HashReader reader(overlay(), found, now_ms());
    reader.walk([&](std::string_view field, const FieldValue& value) {
      pairs.emplace_back(field, value.bytes);
      return true;
    });
    CHECK(reader.length() == pairs.size());
    CHECK_FALSE(overlay().failed());
    return pairs;
  }
  std::optional<std::pair<std::string, int64_t>> get(std::string_view field) {
    if (!exists()) return std::nullopt;
    const Record found = record();
    std::string held;
    FieldValue value;
    if (!HashReader(overlay(), found, now_ms()).get(field, &held, &value)) return std::nullopt;
    return std::pair(std::string(value.bytes), value.expire_ms);
  }
  // Lets the expiry index do its work, as the writer does when something is due.
  void expire_due() {
    if (state().next_due_ms > now_ms()) return;
    const auto progress = keys().expire_due(1000, state().expiry_low_water);
    state().set_expiry_low_water(progress.low_water);
    state().next_due_ms = progress.next_due_ms;
  }

 private:
  template <typename Change>
  bool change(const Change& change) {
    bool answer = false;
    TypedStore::change<HashWriter>(
        HashLimits{
            .inline_max_bytes = inline_max_, .listpack_entries_max = 4, .listpack_value_max = 10},
        [&](HashWriter& hash) { answer = change(hash); });
    return answer;
  }

  const uint64_t inline_max_;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("a hash is small up to the limit, in the order of insertion", "[hash]") {
  OneHash hash(each_engine(), 20);
  CHECK(hash.set("b", "1"));
  CHECK(hash.set("a", "2"));
  CHECK_FALSE(hash.set("b", "33"));
  CHECK(hash.all() == Pairs{{"b", "33"}, {"a", "2"}});
  CHECK_FALSE(hash.is_large());
  CHECK(hash.record().payload().size() == 11);
  CHECK(hash.set("c", std::string(5, 'x')));  // 2 + 2 + 5 more: 20
  CHECK_FALSE(hash.is_large());
  CHECK_FALSE(hash.set("a", "22"));
  CHECK(hash.is_large());
  CHECK(hash.get("b")->first == "33");
  CHECK(hash.remove("a"));
  CHECK_FALSE(hash.remove("a"));
  CHECK(hash.remove("b"));
  CHECK(hash.is_large());  // for good
  CHECK(hash.remove("c"));
  CHECK_FALSE(hash.exists());
  CHECK(hash.effects().dropped_collections.size() == 1);
}

TEST_CASE("hashes change their encoding as in Redis", "[hash]") {
  OneHash hash(each_engine(), 1000);
  auto encoding = [&] { return encoding_name(hash.record()); };
  hash.set("a", std::string(10, 'x'));
  CHECK(encoding() == "listpack");
  hash.set("a", std::string(11, 'x'));
  CHECK(encoding() == "hashtable");
  hash.set("a", "x");
  CHECK(encoding() == "hashtable");
  hash.remove("a");
  for (const char* field : {"a", "b", "c", "d"}) hash.set(field, "");
  CHECK(encoding() == "listpack");
  hash.set("e", "");
  CHECK(encoding() == "hashtable");
}

TEST_CASE("fields expire by themselves", "[hash]") {
  const uint64_t inline_max = GENERATE(0, 1000);
  OneHash hash(each_engine(), inline_max);
  hash.set("never", "v");
  hash.set("soon", "v", 2000);
  hash.set("later", "v", 3000);
  CHECK(hash.record().element_expire_ms() == 2000);
  CHECK(hash.records_in(Space::kExpiry) == 1);
  CHECK(hash.state().next_due_ms <= 2000);
  hash.at(1999);
  CHECK(hash.all().size() == 3);
  hash.at(2000);
  CHECK(hash.all().size() == 2);
  CHECK_FALSE(hash.get("soon"));
  hash.commit();
  hash.expire_due();
  CHECK(hash.record().element_expire_ms() == 3000);
  CHECK(hash.state().next_due_ms == 3000);
  CHECK(hash.records_in(Space::kExpiry) == 1);
  hash.set("later", "w");  // it never expires now
  hash.at(3000);
  hash.expire_due();
  CHECK(hash.record().element_expire_ms() == 0);
  CHECK(hash.records_in(Space::kExpiry) == 0);
  CHECK(hash.records_in(Space::kOrder) == 0);
  hash.remove("never");
  hash.set("later", "x", 4000);
  hash.at(4000);
  hash.expire_due();
  CHECK_FALSE(hash.exists());
  std::vector<std::string_view> events;
  for (const Notice& notice : hash.effects().notices.list) {
    events.push_back(std::get<Event>(notice).name);
  }
  CHECK(events == std::vector<std::string_view>{"hexpired", "hexpired", "del"});
  CHECK(hash.records_in(Space::kMeta) == 0);
  CHECK(hash.records_in(Space::kExpiry) == 0);
}

TEST_CASE("the expiry of a key and of its fields do not disturb each other", "[hash]") {
  OneHash hash(each_engine());
  hash.set("f", "v", 5000);
  hash.set("g", "v");
  auto expire_key = [&](int64_t when_ms) {
    Record old = hash.record();
    storage::Metadata after = old.metadata();
    after.expire_ms = when_ms;
    hash.keys().store(0, TypedStore::kKey, &old, after);
  };
  expire_key(9000);
  CHECK(hash.record().metadata().indexed_ms == 5000);
  expire_key(4000);
  CHECK(hash.record().metadata().indexed_ms == 4000);
  expire_key(0);
  CHECK(hash.records_in(Space::kExpiry) == 1);
  CHECK(hash.keys().counts(0).expires == 0);
  hash.at(4500);
  hash.expire_due();
  CHECK(hash.all().size() == 2);
  CHECK(hash.record().metadata().indexed_ms == 5000);
  hash.at(5000);
  hash.expire_due();
  CHECK(hash.all() == Pairs{{"g", "v"}});
  CHECK(hash.records_in(Space::kExpiry) == 0);
  hash.set("f", "v", 8000);
  expire_key(7000);
  hash.at(7000);
  hash.expire_due();
  CHECK_FALSE(hash.exists());
  CHECK(hash.records_in(Space::kExpiry) == 0);
}

TEST_CASE("many fields that are due together go in portions", "[hash]") {
  OneHash hash(each_engine());
  for (int i = 0; i < 2000; ++i) hash.set("f" + std::to_string(i), "v", 2000);
  hash.set("stays", "v");
  hash.commit();
  hash.at(2000);
  CHECK(hash.all() == Pairs{{"stays", "v"}});
  hash.expire_due();
  CHECK(hash.record().collection()->count > 1000);
  CHECK(hash.all() == Pairs{{"stays", "v"}});
  for (int64_t now = 2001; now < 2010; ++now) {
    hash.at(now);
    hash.expire_due();
    hash.commit();
  }
  CHECK(hash.record().collection()->count == 1);
  CHECK(hash.records_in(Space::kData) == 1);
  CHECK(hash.records_in(Space::kOrder) == 0);
  CHECK(hash.records_in(Space::kExpiry) == 0);
}

TEST_CASE("bytes that are no hash are an error", "[hash]") {
  OneHash hash(each_engine(), 1000);
  for (const std::string& bad : {std::string("\x05"),
                                 std::string("\x01"
                                             "f"),
                                 std::string("\x01"
                                             "f\x00",
                                             3),
                                 std::string("\x01"
                                             "f\x01\x07"),
                                 std::string("\x01"
                                             "f\x03\x01zz")}) {
    hash.replace_record({.type = storage::ValueType::kHash, .payload = bad});
    const Record found = hash.record();
    HashReader reader(hash.overlay(), found, 0);
    reader.walk([](std::string_view, const FieldValue&) { return true; });
    CHECK(hash.take_error().code() == storage::Status::Code::kCorruption);
  }
}

TEST_CASE("random changes agree with a plain hash", "[hash]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  auto below = [&](size_t limit) { return random() % limit; };
  OneHash hash(each_engine(), 150);
  struct Field {
    std::string name, value;
    int64_t expire_ms;
  };
  std::vector<Field> model;
  int64_t now_ms = 1000;
  for (size_t step = 0; step < hash.steps(4000); ++step) {
    const std::string name(below(3), static_cast<char>('a' + below(12)));
    const auto found = std::ranges::find(model, name, &Field::name);
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::string value(below(8) == 0 ? below(300) : below(12), 'v');
        const int64_t expire_ms = below(3) == 0 ? now_ms + 1 + static_cast<int64_t>(below(60)) : 0;
        REQUIRE(hash.set(name, value, expire_ms) == (found == model.end()));
        if (found == model.end()) {
          model.push_back({name, value, expire_ms});
        } else {
          *found = {name, value, expire_ms};
        }
        break;
      }
      case 4:
      case 5:
        REQUIRE(hash.remove(name) == (found != model.end()));
        if (found != model.end()) model.erase(found);
        break;
      case 6:
        now_ms += static_cast<int64_t>(below(20));
        hash.at(now_ms);
        std::erase_if(model, [&](const Field& field) {
          return field.expire_ms != 0 && field.expire_ms <= now_ms;
        });
        if (below(2) == 0) hash.expire_due();
        break;
      case 7:
        below(30) == 0 ? hash.reopen() : hash.commit();
        break;
      case 8:
        if (below(40) != 0) break;
        for (const Field& field : model) hash.remove(field.name);
        model.clear();
        break;
      default: {
        const auto got = hash.get(name);
        REQUIRE(got.has_value() == (found != model.end()));
        if (got) REQUIRE(*got == std::pair(found->value, found->expire_ms));
      }
    }
    Pairs expected;
    for (const Field& field : model) expected.emplace_back(field.name, field.value);
    Pairs actual = hash.all();
    std::ranges::sort(expected);  // an expired field that is set again may keep its old place
    std::ranges::sort(actual);
    REQUIRE(actual == expected);
  }
  // Whatever is left goes without a trace.
  now_ms += 1000;
  hash.at(now_ms);
  for (const Field& field : model) hash.remove(field.name);
  for (int i = 0; i < 3; ++i) {
    hash.at(++now_ms);
    hash.state().next_due_ms = 0;
    hash.expire_due();
  }
  CHECK_FALSE(hash.exists());
  CHECK(hash.records_in(Space::kExpiry) == 0);
}

}  // namespace
}  // namespace ingot::types
