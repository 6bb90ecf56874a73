// Cache-only reads of RocksDB: what they may answer, and the trap in them.
#include <rocksdb/db.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <thread>

#include "storage/no_wait_reads.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kMeta = Space::kMeta;
constexpr int kRounds = 3;  // table files per space: too few for a compaction to join them
constexpr int kKeysPerFile = 400;

std::string key_of(int i) {
  return "key" + std::to_string(i);
}
std::string value_of(int i) {
  return noise(100, static_cast<uint64_t>(i));
}

// Keys 0, 2, 4... in each space, each space in kRounds files.
void fill_files(TestEngine* engine) {
  for (int round = 0; round < kRounds; ++round) {
    const auto batch = (*engine)->new_batch();
    for (Space space : kAllSpaces) {
      for (int i = round; i < kRounds * kKeysPerFile; i += kRounds) {
        batch->put(space, key_of(2 * i), value_of(2 * i));
      }
    }
    REQUIRE((*engine)->write(*batch, Durability::kBuffered).ok());
    REQUIRE((*engine)->flush().ok());
  }
}

struct Tally {
  int found = 0;
  int absent = 0;
  int missed = 0;
  int wrong = 0;
};

// Probes every key that there is and as many that there are not.
Tally probe_all(Engine* engine) {
  Tally tally;
  std::string value;
  for (Space space : kAllSpaces) {
    for (int i = 0; i < 2 * kRounds * kKeysPerFile; ++i) {
      const Lookup outcome =
          engine->get(nullptr, space, key_of(i), Tier::kCacheOnly, &value, nullptr);
      const bool there = i % 2 == 0;
      const bool right =
          outcome == Lookup::kMiss ||
          (there ? outcome == Lookup::kFound && value == value_of(i) : outcome == Lookup::kAbsent);
      tally.wrong += right ? 0 : 1;
      tally.found += outcome == Lookup::kFound ? 1 : 0;
      tally.absent += outcome == Lookup::kAbsent ? 1 : 0;
      tally.missed += outcome == Lookup::kMiss ? 1 : 0;
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("RocksDB: a probe answers from memtables") {
  TestEngine engine("rocksdb");
  REQUIRE(engine->capabilities().probe);
  REQUIRE(engine.put(kMeta, "k", "v").ok());
  REQUIRE(engine.put(kMeta, "gone", "v").ok());
  REQUIRE(engine.remove(kMeta, "gone").ok());
  CHECK(engine.peek(kMeta, "k") == "v");
  CHECK(engine.peek(kMeta, "gone") == "<absent>");
  CHECK(engine.peek(kMeta, "never") == "<absent>");
}

TEST_CASE("RocksDB: a probe of a cold cache misses, and hits once the disk was read") {
  TestEngine engine("rocksdb");
  for (int i = 0; i < 5000; ++i) REQUIRE(engine.put(kMeta, key_of(i), value_of(i)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  CHECK(engine.peek(kMeta, key_of(1)) == "<miss>");
  CHECK(engine.get(kMeta, key_of(1)) == value_of(1));
  CHECK(engine.peek(kMeta, key_of(1)) == value_of(1));
  CHECK(engine.peek(kMeta, key_of(4321)) == "<miss>");  // another block
}

TEST_CASE("RocksDB: filters answer for absent keys without reading data") {
  TestEngine engine("rocksdb");
  for (int i = 0; i < 20'000; ++i) REQUIRE(engine.put(kMeta, key_of(i), value_of(i)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  // One disk read for each block of filters that a key needs; then memory knows.
  for (int i = 0; i < 20'000; i += 10) engine.get(kMeta, key_of(i) + "x");
  int absent = 0;
  for (int i = 0; i < 20'000; i += 10) absent += engine.peek(kMeta, key_of(i) + "x") == "<absent>";
  CHECK(absent >= 1980);
}

TEST_CASE("RocksDB: a start reads filters and indexes by itself, and no data") {
  TestEngine engine("rocksdb");
  for (int i = 0; i < 40'000; ++i) REQUIRE(engine.put(kMeta, key_of(i), value_of(i)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  const auto known_absent = [&] {
    int absent = 0;
    for (int i = 0; i < 40'000; i += 20) {
      absent += engine.peek(kMeta, key_of(i) + "x") == "<absent>";
    }
    return absent;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (known_absent() < 1980 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(known_absent() >= 1980);
  CHECK(engine.peek(kMeta, key_of(1)) == "<miss>");
  for (int i = 0; i < 20; ++i) engine.reopen();  // it may be under way
  CHECK(engine.get(kMeta, key_of(1)) == value_of(1));
}

TEST_CASE("RocksDB: many records are looked up at once, as far as memory knows them") {
  TestEngine engine("rocksdb");
  const std::string large = noise(600 << 10, 1);
  for (const char* key : {"a", "b", "c", "d"}) REQUIRE(engine.put(Space::kData, key, large).ok());
  REQUIRE(engine.put(Space::kData, "0", "value").ok());
  std::vector<std::string_view> keys = {"0", "1"};
  std::vector<std::string> values(6);
  std::vector<Lookup> found(6, Lookup::kMiss);
  const auto look_up = [&] {
    std::ranges::fill(values, "");
    const size_t count = keys.size();
    engine->get_many(Space::kData, keys, std::span(values).first(count),
                     std::span(found).first(count));
  };
  look_up();
  CHECK(found[0] == Lookup::kFound);
  CHECK(values[0] == "value");
  CHECK(found[1] == Lookup::kAbsent);
  keys.insert(keys.end(), {"a", "b", "c", "d"});
  look_up();
  CHECK(std::ranges::count(found, Lookup::kFound) < 5);  // that would be more than a megabyte
  CHECK(std::ranges::count(found, Lookup::kMiss) > 0);
  for (size_t i = 2; i < keys.size(); ++i) {
    CHECK((found[i] == Lookup::kMiss || (found[i] == Lookup::kFound && values[i] == large)));
  }
  REQUIRE(engine->flush().ok());
  engine.reopen();
  look_up();  // there is nothing in memory yet
  CHECK(std::ranges::count(found, Lookup::kFound) == 0);
  CHECK(engine.get(Space::kData, "0") == "value");
  look_up();
  CHECK(found[0] == Lookup::kFound);
  CHECK(values[0] == "value");
}

TEST_CASE("RocksDB: nor does a cache-only cursor read a part of an index") {
  TestEngine engine("rocksdb");
  for (int i = 0; i < 20'000; ++i) REQUIRE(engine.put(kMeta, key_of(i), noise(300, 7)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  CursorOptions options;
  options.tier = Tier::kCacheOnly;
  for (int i = 0; i < 20'000; i += 500) {
    const auto cold = engine->new_cursor(kMeta, options);
    cold->seek(key_of(i));
    CHECK_FALSE(cold->valid());
    CHECK(cold->outcome() == Lookup::kMiss);
    CHECK(cold->status().ok());
  }
}

TEST_CASE("RocksDB: a cache-only cursor misses instead of reading") {
  TestEngine engine("rocksdb");
  for (int i = 0; i < 5000; ++i) REQUIRE(engine.put(kMeta, key_of(i), value_of(i)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  CursorOptions options;
  options.tier = Tier::kCacheOnly;
  const auto cold = engine->new_cursor(kMeta, options);
  cold->seek(key_of(3));
  CHECK_FALSE(cold->valid());
  CHECK(cold->outcome() == Lookup::kMiss);
  CHECK(cold->status().ok());
  CHECK(engine.scan(kMeta).size() == 5000);
  CHECK(engine.scan(kMeta, options).size() == 5000);  // now all of it is in the cache
}

// A level of several tables: RocksDB forgets that the next one of them could not be read, unless it
// is told to ignore range deletions.
TEST_CASE("RocksDB: a cursor that cannot go on in the next table says so") {
  constexpr int kTables = 4;
  constexpr int kKeysPerTable = 300;
  EngineOptions options = TestEngine::small_options();
  options.direct_reads = GENERATE(false, true);
  TestEngine engine("rocksdb", options);
  const auto key_in = [](int table, int i) {
    return std::to_string(table) + "/" + std::to_string(1000 + i);
  };
  for (int table = 0; table < kTables; ++table) {
    const auto batch = engine->new_batch();
    for (int i = 0; i < kKeysPerTable; ++i) batch->put(kMeta, key_in(table, i), value_of(i));
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    REQUIRE(engine->compact(kMeta, {key_in(table, 0), key_in(table, kKeysPerTable)}).ok());
  }
  const bool backwards = GENERATE(false, true);
  const auto walk = [&](Tier tier, int tables) {
    const int first = backwards ? kTables - tables : 0;
    const auto at = engine->new_cursor(
        kMeta, {.lower = key_in(first, 0), .upper = key_in(first + tables, 0), .tier = tier});
    int seen = 0;
    backwards ? at->seek_for_prev(key_in(first + tables, 0)) : at->seek(key_in(first, 0));
    for (; at->valid(); backwards ? at->prev() : at->next()) ++seen;
    return std::pair(seen, at->outcome());
  };
  for (int cached = 0; cached <= kTables; ++cached) {
    engine.reopen();
    if (cached > 0) (void)walk(Tier::kDisk, cached);
    const auto [seen, outcome] = walk(Tier::kCacheOnly, kTables);
    CAPTURE(cached, seen);
    CHECK((outcome == Lookup::kMiss || seen == kTables * kKeysPerTable));
    NoWaitReads reads;
    const NoWaitReads::Scope scope(&reads);
    const auto [seen_now, outcome_now] = walk(Tier::kCacheOnly, kTables);
    CHECK((outcome_now == Lookup::kMiss || seen_now == kTables * kKeysPerTable));
    CHECK(walk(Tier::kDisk, kTables) == std::pair(kTables * kKeysPerTable, Lookup::kFound));
  }
}

TEST_CASE("RocksDB: the trap of cache-only reads with a limit on open files") {
  TestEngine engine("rocksdb");
  fill_files(&engine);

  SECTION("the engine has no limit, and never answers wrongly") {
    std::string options;
    for (const auto& entry : std::filesystem::directory_iterator(engine.options().path)) {
      if (entry.path().filename().string().starts_with("OPTIONS-"))
        options = content_of(entry.path());
    }
    CHECK(options.contains("max_open_files=-1"));

    engine.reopen();
    const Tally cold = probe_all(&*engine);
    CHECK(cold.wrong == 0);
    CHECK(cold.missed > 0);
    for (Space space : kAllSpaces) CHECK(engine.scan(space).size() == kRounds * kKeysPerFile);
    const Tally warm = probe_all(&*engine);
    CHECK(warm.wrong == 0);
    CHECK(warm.found > 6 * kRounds * kKeysPerFile * 9 / 10);
  }

  SECTION("with one, RocksDB says OK and empty for keys that are there and that are not") {
    engine.close();
    rocksdb::DBOptions options;
    options.max_open_files = 20;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (Space space : kAllSpaces) {
      families.emplace_back(std::string(space_name(space)), rocksdb::ColumnFamilyOptions());
    }
    families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* raw = nullptr;
    REQUIRE(rocksdb::DB::Open(options, engine.options().path, families, &handles, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    rocksdb::ReadOptions cache_only;
    cache_only.read_tier = rocksdb::kBlockCacheTier;
    std::array<int, 2> empty_answers = {};  // for absent keys, for present keys
    for (size_t space = 0; space < kSpaceCount; ++space) {
      for (int i = 0; i < 2 * kRounds * kKeysPerFile; ++i) {
        std::string value;
        const rocksdb::Status status = db->Get(cache_only, handles[space], key_of(i), &value);
        if (status.ok() && value.empty()) ++empty_answers[i % 2 == 0];
      }
    }
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    CHECK(empty_answers[0] > 0);
    CHECK(empty_answers[1] > 0);
  }
}

}  // namespace ingot::storage
