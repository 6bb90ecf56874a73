// Where the expiry of keys goes on: behind what it has removed, also among many of one time.
#include <catch2/catch.hpp>
#include <string>

#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

constexpr int64_t kDueMs = 5000;

class Expiring : public TypedStore {
 public:
  using TypedStore::TypedStore;

  void put(std::string_view key) {
    keys().store(0, key, nullptr,
                 {.type = storage::ValueType::kString, .expire_ms = kDueMs, .payload = "v"},
                 Touch::kQuiet);
  }
  void expire(size_t limit) {
    const auto progress = keys().expire_due(limit, state().expiry_low_water);
    state().set_expiry_low_water(progress.low_water);
    state().next_due_ms = progress.next_due_ms;
  }
  std::string entry(std::string_view key) {
    return storage::expiry_key(kDueMs, state().databases[0], key);
  }
};

}  // namespace

TEST_CASE("expiry goes on behind the last entry, not at its time") {
  Expiring store(each_engine());
  for (const char key : std::string("abcdefghij")) store.put(std::string(1, key));
  store.at(kDueMs);
  store.expire(4);
  CHECK(store.records_in(storage::Space::kExpiry) == 6);
  CHECK(store.state().expiry_low_water == store.entry("d"));
  store.undone([&] {
    store.expire(3);
    CHECK(store.state().expiry_low_water == store.entry("g"));
    store.put("e");
    CHECK(store.state().expiry_low_water == store.entry("e"));
  });
  CHECK(store.state().expiry_low_water == store.entry("d"));
  store.put("b");
  store.expire(100);
  CHECK(store.records_in(storage::Space::kExpiry) == 0);
  CHECK(store.records_in(storage::Space::kMeta) == 0);
  store.put("a");
  store.expire(100);
  CHECK(store.records_in(storage::Space::kExpiry) == 0);
}

}  // namespace ingot::types
