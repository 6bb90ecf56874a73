// The cache of hot records: what it holds, what it gives up, and that it is never stale.
#include "storage/record_cache.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <thread>

namespace ingot::storage {
namespace {

HashedKey name(std::string_view key) {
  return {Space::kMeta, key};
}

std::string cached(RecordCache& cache, std::string_view key) {
  std::string value;
  return cache.get(name(key), &value) ? value : "absent";
}

std::string cached_at(RecordCache& cache, RecordCache::Moment moment, std::string_view key) {
  std::string value;
  return cache.get_at(moment, name(key), &value) ? value : "absent";
}

RecordCache::Changing begin(RecordCache& cache, std::string_view key) {
  cache.begin_changes();
  return cache.begin_change(name(key));
}

void end(RecordCache& cache, std::string_view key, RecordCache::Changing changing,
         std::string_view value) {
  cache.end_changes();
  cache.end_change(name(key), changing, value);
}

void commit(RecordCache& cache, std::string_view key, std::string_view value) {
  end(cache, key, begin(cache, key), value);
}

}  // namespace

TEST_CASE("a record is cached by a read or by a commit", "[record_cache]") {
  RecordCache cache(1 << 20);
  cache.fill(cache.now(), name("k"), "read");
  CHECK(cached(cache, "k") == "read");
  commit(cache, "k", "written");
  CHECK(cached(cache, "k") == "written");
  commit(cache, "k", "");
  CHECK(cached(cache, "k") == "absent");
  CHECK(cache.bytes() == 0);
  CHECK(cache.hits() == 2);
}

TEST_CASE("a read that a commit has overtaken is not cached", "[record_cache]") {
  RecordCache cache(1 << 20);
  const RecordCache::Moment before = cache.now();
  const auto changing = begin(cache, "k");
  const RecordCache::Moment during = cache.now();
  cache.fill(before, name("k"), "old");
  cache.fill(during, name("k"), "old");
  CHECK(cached(cache, "k") == "absent");
  cache.end_changes();
  const RecordCache::Moment after = cache.now();
  cache.fill(after, name("k"), "new");
  CHECK(cached(cache, "k") == "absent");
  cache.end_change(name("k"), changing, "");
  cache.fill(before, name("k"), "old");
  cache.fill(during, name("k"), "old");
  CHECK(cached(cache, "k") == "absent");
  cache.fill(after, name("k"), "new");
  CHECK(cached(cache, "k") == "new");
}

TEST_CASE("a snapshot is told what did not change since", "[record_cache]") {
  RecordCache cache(1 << 20);
  commit(cache, "k", "first");
  const RecordCache::Moment before = cache.now();
  CHECK(cached_at(cache, before, "k") == "first");
  const auto changing = begin(cache, "k");
  const RecordCache::Moment during = cache.now();
  CHECK(cached_at(cache, before, "k") == "absent");
  end(cache, "k", changing, "second");
  CHECK(cached_at(cache, before, "k") == "absent");
  CHECK(cached_at(cache, during, "k") == "absent");
  CHECK(cached_at(cache, cache.now(), "k") == "second");

  cache.begin_changes();
  cache.begin_new();
  cache.end_changes();
  const RecordCache::Moment since = cache.now();
  cache.fill(since, name("new"), "element");
  CHECK(cached_at(cache, since - 1, "new") == "absent");
  CHECK(cached_at(cache, since, "new") == "element");
  CHECK(cached(cache, "new") == "element");
}

TEST_CASE("a cached record is gone while it changes", "[record_cache]") {
  RecordCache cache(1 << 20);
  commit(cache, "k", "old");
  const auto changing = begin(cache, "k");
  CHECK(cached(cache, "k") == "absent");
  end(cache, "k", changing, "new");
  CHECK(cached(cache, "k") == "new");
}

TEST_CASE("what is changing stays, however many come meanwhile", "[record_cache]") {
  RecordCache cache(64 << 10);
  commit(cache, "k", "old");
  const auto changing = begin(cache, "k");
  for (int i = 0; i < 5000; ++i) {
    cache.add(name("other" + std::to_string(i)), std::string(100, 'x'));
  }
  const uint64_t capacity = GENERATE(uint64_t{64 << 10}, uint64_t{0});
  cache.set_capacity(capacity);
  end(cache, "k", changing, "new");
  CHECK(cached(cache, "k") == (capacity == 0 ? "absent" : "new"));
  CHECK(cache.bytes() <= capacity);
}

TEST_CASE("a key of one space is not that of another", "[record_cache]") {
  RecordCache cache(1 << 20);
  commit(cache, "k", "record");
  std::string value;
  CHECK_FALSE(cache.get({Space::kData, "k"}, &value));
  cache.fill(cache.now(), {Space::kData, "k"}, "element");
  CHECK(cached(cache, "k") == "record");
}

TEST_CASE("the cache keeps to its size, and keeps what is used", "[record_cache]") {
  constexpr uint64_t kBytes = 256 << 10;
  RecordCache cache(kBytes);
  commit(cache, "hot", "value");
  for (int i = 0; i < 20000; ++i) {
    commit(cache, "cold" + std::to_string(i), std::string(100, 'x'));
    REQUIRE(cached(cache, "hot") == "value");
  }
  CHECK(cache.bytes() <= kBytes);
  CHECK(cache.bytes() > kBytes / 2);
  CHECK(cached(cache, "cold1") == "absent");
  commit(cache, "long", std::string(RecordCache::kRecordBytesMax + 1, 'x'));
  CHECK(cached(cache, "long") == "absent");
  cache.set_capacity(0);
  CHECK(cache.bytes() == 0);
  commit(cache, "k", "v");
  CHECK(cached(cache, "k") == "absent");
}

TEST_CASE("what comes from the disk is kept when it comes again", "[record_cache]") {
  RecordCache cache(1 << 20);
  const auto read = [&](const std::string& key) {
    cache.fill_from_disk(cache.now(), name(key), std::string(100, 'x'));
  };
  read("hot");
  CHECK(cached(cache, "hot") == "absent");
  read("hot");
  CHECK(cached(cache, "hot") == std::string(100, 'x'));
  for (int i = 0; i < 100'000; ++i) read("cold" + std::to_string(i));
  CHECK(cached(cache, "hot") == std::string(100, 'x'));
  CHECK(cache.bytes() < 100'000);

  const RecordCache::Moment before = cache.now();
  commit(cache, "changed", "");
  for (int i = 0; i < 2; ++i) cache.fill_from_disk(before, name("changed"), "old");
  CHECK(cached(cache, "changed") == "absent");
}

TEST_CASE("a look at a record is no use of it, and fetching changes nothing", "[record_cache]") {
  RecordCache cache(1 << 20);
  commit(cache, "k", "value");
  std::string value;
  CHECK(cache.peek(name("k"), &value));
  CHECK(value == "value");
  CHECK_FALSE(cache.peek(name("other"), &value));
  const std::array names = {name("k"), name("other")};
  std::vector<HashedKey> missing;
  cache.prefetch(names, &missing);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].key == "other");
  CHECK(cache.hits() == 0);
  const auto changing = begin(cache, "k");
  CHECK_FALSE(cache.peek(name("k"), &value));
  cache.prefetch(names, &missing);
  end(cache, "k", changing, "new");
  CHECK(cached(cache, "k") == "new");
}

// Few hashes, so that many entries stand far from where they belong.
TEST_CASE("places find what was put there, whatever was taken away", "[record_cache]") {
  struct Numbered {
    uint64_t number;
  };
  std::mt19937_64 random(1);
  EntryPlaces<Numbered> places;
  std::map<uint64_t, std::unique_ptr<Numbered>> model;
  const uint64_t hashes = GENERATE(3, 50, 1000);
  const auto hash_of = [&](uint64_t number) { return (number % hashes) << 16; };
  for (int step = 0; step < 20000; ++step) {
    const uint64_t number = random() % 1500;
    const auto is = [number](const Numbered& entry) { return entry.number == number; };
    const auto known = model.find(number);
    places.prefetch(hash_of(number));
    REQUIRE(places.find(hash_of(number), is) ==
            (known == model.end() ? nullptr : known->second.get()));
    if (known == model.end()) {
      auto entry = std::make_unique<Numbered>(number);
      places.insert(hash_of(number), entry.get());
      model.emplace(number, std::move(entry));
    } else {
      places.erase(hash_of(number), known->second.get());
      model.erase(known);
    }
    REQUIRE(places.size() == model.size());
  }
}

// One writer counts a record up in "the engine"; readers must never see it go back, and who reads
// at a snapshot sees what that has.
TEST_CASE("concurrent readers see a record only move forward", "[record_cache]") {
  RecordCache cache(1 << 20);
  std::atomic<int> engine{0};
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  const auto read = [&] {
    int last = 0;
    while (!done) {
      std::string value;
      if (!cache.get(name("k"), &value)) {
        const RecordCache::Moment moment = cache.now();
        value = std::to_string(engine.load());
        cache.fill(moment, name("k"), value);
      }
      const int seen = std::stoi(value);
      if (seen < last) ++wrong;
      last = seen;
    }
  };
  const auto read_at = [&] {
    while (!done) {
      const RecordCache::Moment moment = cache.now();
      const int snapshot = engine.load();
      if (snapshot % 16 == 0) std::this_thread::yield();
      std::string value;
      if (cache.get_at(moment, name("k"), &value) && std::stoi(value) != snapshot) ++wrong;
      cache.fill(moment, name("k"), std::to_string(snapshot));
      // Those that are new stand behind the counter.
      if (cache.get_at(moment, name("new" + std::to_string(snapshot + 1)), &value)) ++wrong;
      cache.fill(moment, name("new" + std::to_string(snapshot)), "x");
    }
  };
  std::thread threads[] = {std::thread(read), std::thread(read_at), std::thread(read_at)};
  for (int i = 1; i <= 20000; ++i) {
    const auto changing = begin(cache, "k");
    cache.begin_new();
    engine = i;
    end(cache, "k", changing, i % 2 == 0 ? std::to_string(i) : "");
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace ingot::storage
