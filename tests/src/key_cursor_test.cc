// The table of SCAN's cursors: what it remembers, forgets, saves.
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/types/key_cursor.h"
#include "storage/codec.h"
#include "storage/engine.h"

namespace ingot::types {
namespace {

std::string position(size_t i) {
  return storage::meta_key(3, "key:" + std::to_string(i));
}

TEST_CASE("a cursor is found as often as it is asked for", "[cursor]") {
  KeyCursors cursors;
  const uint64_t first = cursors.add(position(1), 1);
  const uint64_t second = cursors.add(position(1), 1);
  CHECK(first != second);
  CHECK(first != 0);
  CHECK(first < (1ull << 53));
  for (int i = 0; i < 3; ++i) CHECK(cursors.find(first) == position(1));
  CHECK_FALSE(cursors.find(0));
  CHECK_FALSE(cursors.find(second + 1));
}

TEST_CASE("the oldest walks are forgotten when the table is full", "[cursor]") {
  KeyCursors cursors(10'000);
  std::vector<uint64_t> given;
  for (size_t i = 0; i < 1000; ++i) given.push_back(cursors.add(position(i), i + 1));
  CHECK_FALSE(cursors.find(given.front()));
  CHECK(cursors.find(given.back()) == position(999));
  // What is remembered is the newest, without a gap.
  size_t first = 0;
  while (!cursors.find(given[first])) ++first;
  CHECK(1000 - first > 50);
  CHECK(1000 - first < 150);
  for (size_t i = first; i < 1000; ++i) CHECK(cursors.find(given[i]) == position(i));
  // One that alone is too large is kept for its client, and the others go.
  const std::string huge(50'000, 'x');
  const uint64_t large = cursors.add(huge, 7);
  CHECK(cursors.find(large) == huge);
  CHECK_FALSE(cursors.find(given.back()));
  const uint64_t larger = cursors.add(huge, 7, large);
  CHECK(cursors.find(larger) == huge);
  CHECK_FALSE(cursors.find(large));
}

TEST_CASE("one client's scanning costs others no cursor", "[cursor]") {
  const bool continues = GENERATE(false, true);
  KeyCursors cursors;
  uint64_t walk = cursors.add(position(0), 1);
  const uint64_t first = walk;
  uint64_t busy = 0;
  for (size_t i = 0; i < 80'000; ++i) {
    busy = cursors.add(position(i), 2, continues ? busy : 0);
    if (i == 40'000) walk = cursors.add(position(1), 1, walk);
  }
  CHECK(cursors.find(first) == position(0));
  CHECK(cursors.find(walk) == position(1));
  CHECK(cursors.find(busy) == position(79'999));
}

TEST_CASE("the last cursors of a walk are kept, and what is used again", "[cursor]") {
  KeyCursors cursors;
  const uint64_t first = cursors.add(position(0), 1);
  std::vector<uint64_t> given{first};
  for (size_t i = 1; i < 20; ++i) given.push_back(cursors.add(position(i), 1, given.back()));
  CHECK_FALSE(cursors.find(first));
  const size_t kept = given.size() - KeyCursors::kKeptOfWalk;
  CHECK_FALSE(cursors.find(given[kept - 1]));
  for (size_t i = kept; i < given.size(); ++i) CHECK(cursors.find(given[i]) == position(i));
  for (size_t i = 0; i < 50; ++i) cursors.add(position(100), 1, given.back());
  CHECK(cursors.find(given.back()) == position(19));
}

TEST_CASE("walks that came to their end are forgotten first", "[cursor]") {
  KeyCursors cursors(10'000);
  const uint64_t open = cursors.add(position(0), 1);
  const uint64_t ended = cursors.add(position(1), 2);
  cursors.end(ended);
  CHECK(cursors.find(ended) == position(1));
  uint64_t client = 3;
  while (cursors.find(ended)) cursors.add(position(2), client++);
  CHECK(cursors.find(open) == position(0));
}

TEST_CASE("cursors outlive a clean restart", "[cursor]") {
  auto engine = storage::open_memory({}).first;
  std::vector<uint64_t> given;
  {
    KeyCursors cursors;
    for (size_t i = 0; i < 100; ++i) given.push_back(cursors.add(position(i), 1));
    cursors.add(std::string(3, '\0'), 1);
    cursors.save(*engine);
  }
  KeyCursors cursors;
  cursors.load(*engine);
  for (size_t i = 0; i < 100; ++i) CHECK(cursors.find(given[i]) == position(i));
  CHECK(cursors.find(given.back() + 1) == std::string(3, '\0'));
  // New ones take no number that is taken.
  const std::set<uint64_t> old(given.begin(), given.end());
  for (size_t i = 0; i < 100; ++i) CHECK_FALSE(old.contains(cursors.add("new", 1)));
  for (size_t i = 0; i < 100; ++i) CHECK(cursors.find(given[i]) == position(i));
}

TEST_CASE("what was not saved is unknown after a restart", "[cursor]") {
  auto engine = storage::open_memory({}).first;
  KeyCursors before;
  before.save(*engine);
  const uint64_t lost = before.add(position(1), 1);
  KeyCursors after;
  after.load(*engine);
  for (size_t i = 0; i < 100; ++i) after.add(position(i), 1);
  CHECK_FALSE(after.find(lost));
}

TEST_CASE("a damaged record costs cursors, nothing else", "[cursor]") {
  auto engine = storage::open_memory({}).first;
  KeyCursors before;
  const uint64_t first = before.add(position(1), 1);
  const uint64_t second = before.add(position(2), 1);
  before.save(*engine);
  std::string record;
  REQUIRE(engine->get(nullptr, storage::Space::kSystem, storage::named_key("cursors"),
                      storage::Tier::kDisk, &record, nullptr) == storage::Lookup::kFound);
  for (size_t bytes = 1; bytes < record.size(); ++bytes) {
    auto batch = engine->new_batch();
    batch->put(storage::Space::kSystem, storage::named_key("cursors"), record.substr(0, bytes));
    REQUIRE(engine->write(*batch, storage::Durability::kBuffered).ok());
    KeyCursors after;
    after.load(*engine);
    if (const auto found = after.find(first)) CHECK(*found == position(1));
    CHECK_FALSE(after.find(second));
  }
}

TEST_CASE("many threads share the table", "[cursor]") {
  KeyCursors cursors;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&cursors, thread] {
      for (size_t i = 0; i < 2000; ++i) {
        const std::string mine = position(thread * 10'000 + i);
        const uint64_t cursor = cursors.add(mine, thread + 1);
        if (cursors.find(cursor) != mine) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ingot::types
