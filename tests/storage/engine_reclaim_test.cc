// reclaim() on every engine: the dead keys go, wherever they are, and nothing else does.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr Space kData = Space::kData;

void fill(TestEngine* engine, uint64_t id, int elements, size_t value_bytes) {
  const auto batch = (*engine)->new_batch();
  for (int i = 0; i < elements; ++i) {
    batch->put(kData, element_key(id, std::to_string(i)),
               noise(value_bytes, id * 1'000'003 + static_cast<uint64_t>(i)));
    if (batch->bytes() < 100'000) continue;
    REQUIRE((*engine)->write(*batch, Durability::kBuffered).ok());
    batch->clear();
  }
  REQUIRE((*engine)->write(*batch, Durability::kBuffered).ok());
}

size_t count(TestEngine* engine, uint64_t id) {
  const KeyRange range = element_range(id);
  CursorOptions options;
  options.lower = range.begin;
  options.upper = range.end;
  return engine->scan(kData, options).size();
}

// Files are deleted by a background thread.
uint64_t settled_disk_bytes(TestEngine* engine, uint64_t at_most) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  uint64_t bytes = (*engine)->stats().disk_bytes;
  while (bytes > at_most && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(10ms);
    bytes = (*engine)->stats().disk_bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("reclaim takes the dead keys and no other") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  enum class Where { kMemory, kFiles, kCompacted, kBoth };
  const auto where = GENERATE(Where::kMemory, Where::kFiles, Where::kCompacted, Where::kBoth);
  CAPTURE(where);
  const auto settle = [&] {
    if (where != Where::kMemory) REQUIRE(engine->flush().ok());
    if (where == Where::kCompacted) REQUIRE(engine->compact(kData, {}).ok());
  };
  for (uint64_t id = 1; id <= 5; ++id) fill(&engine, id, 300, 100);
  settle();
  if (where == Where::kBoth) {
    fill(&engine, 2, 400, 50);  // over what lies in files
    for (int i = 0; i < 100; ++i) {
      REQUIRE(engine.remove(kData, element_key(4, std::to_string(i))).ok());
    }
  }
  REQUIRE(engine.put(Space::kOrder, element_key(2, "x"), "another space").ok());

  REQUIRE(engine->reclaim(kData, {}).ok());
  const std::vector<KeyRange> dead = {element_range(2), element_range(4)};
  const auto bystander = engine->new_snapshot();  // a view that has nothing to do with them
  REQUIRE(engine->reclaim(kData, dead).ok());
  CHECK(count(&engine, 1) == 300);
  CHECK(count(&engine, 2) == 0);
  CHECK(count(&engine, 3) == 300);
  CHECK(count(&engine, 4) == 0);
  CHECK(count(&engine, 5) == 300);
  CHECK(engine.get(kData, element_key(2, "7")) == "<absent>");
  CHECK(engine.get(kData, element_key(3, "7")) == noise(100, 3'000'009 + 7));
  CHECK(engine.get(Space::kOrder, element_key(2, "x")) == "another space");
}

TEST_CASE("what was reclaimed stays away") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  for (uint64_t id = 1; id <= 3; ++id) fill(&engine, id, 300, 100);
  REQUIRE(engine->flush().ok());
  fill(&engine, 2, 100, 30);
  const std::vector<KeyRange> dead = {element_range(2)};
  REQUIRE(engine->reclaim(kData, dead).ok());
  engine.reopen();
  CHECK(count(&engine, 1) == 300);
  CHECK(count(&engine, 2) == 0);
  CHECK(count(&engine, 3) == 300);
  REQUIRE(engine->compact(kData, {}).ok());
  CHECK(count(&engine, 2) == 0);
  // The set of dead ranges ended with the call: the range may be filled again.
  fill(&engine, 2, 50, 30);
  REQUIRE(engine->compact(kData, {}).ok());
  CHECK(count(&engine, 2) == 50);
}

TEST_CASE("reclaim gives the disk space back") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine.persistent()) return;
  INFO(engine.name());
  for (uint64_t id = 1; id <= 8; ++id) fill(&engine, id, 4000, 1000);
  REQUIRE(engine->flush().ok());
  REQUIRE(engine->compact(kData, {}).ok());
  CHECK(settled_disk_bytes(&engine, 34'000'000) > 32'000'000);
  std::vector<KeyRange> dead;
  for (uint64_t id = 2; id <= 7; ++id) dead.push_back(element_range(id));
  REQUIRE(engine->reclaim(kData, dead).ok());
  CHECK(settled_disk_bytes(&engine, 9'500'000) < 9'500'000);
  CHECK(count(&engine, 1) == 4000);
  CHECK(count(&engine, 8) == 4000);
}

TEST_CASE("thousands of tiny dead ranges are one piece of work") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  constexpr uint64_t kIds = 5000;
  for (uint64_t id = 0; id < kIds; ++id) fill(&engine, id, 2, 20);
  REQUIRE(engine->compact(kData, {}).ok());
  std::vector<KeyRange> dead;
  for (uint64_t id = 0; id < kIds; id += 2) dead.push_back(element_range(id));
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(engine->reclaim(kData, dead).ok());
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  const Records left = engine.scan(kData);
  CHECK(left.size() == kIds);
  for (const auto& [key, value] : left) REQUIRE((key[7] & 1) == 1);
}

TEST_CASE("reclaim beside writers and readers") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  for (uint64_t id = 1; id <= 6; ++id) fill(&engine, id, 2000, 200);
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    while (!stop) {
      const int i = ++written;
      if (!engine.put(kData, element_key(7, std::to_string(i)), noise(200, 1)).ok()) ++failures;
    }
  });
  std::thread reader([&] {
    while (!stop) {
      for (int i = 0; i < 2000; i += 50) {
        if (engine.get(kData, element_key(1, std::to_string(i))).size() != 200) ++failures;
      }
    }
  });
  for (uint64_t id = 2; id <= 6; ++id) {
    const std::vector<KeyRange> dead = {element_range(id)};
    if (!engine->reclaim(kData, dead).ok()) ++failures;
  }
  stop = true;
  writer.join();
  reader.join();
  CHECK(failures == 0);
  CHECK(count(&engine, 1) == 2000);
  for (uint64_t id = 2; id <= 6; ++id) CHECK(count(&engine, id) == 0);
  CHECK(count(&engine, 7) == static_cast<size_t>(written));
}

}  // namespace ingot::storage
