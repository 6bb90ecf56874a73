// What only RocksDB does: checkpoints, direct reads, pacing, live settings, the memory bound.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "storage/rocksdb/rocksdb_options.h"
#include "storage/salvage/salvaged_table.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kData = Space::kData;

std::string key_of(int i) {
  return "key" + std::to_string(i);
}

void fill(TestEngine* engine, int records, size_t value_bytes) {
  const auto batch = (*engine)->new_batch();
  for (int i = 0; i < records; ++i) {
    batch->put(kData, key_of(i), noise(value_bytes, static_cast<uint64_t>(i)));
    if (i % 64 != 63 && i + 1 != records) continue;
    REQUIRE((*engine)->write(*batch, Durability::kBuffered).ok());
    batch->clear();
  }
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("RocksDB: look-ups in a memtable leave nothing behind") {
  TestEngine engine("rocksdb");
  REQUIRE(engine.put(kData, "key", "value").ok());
  const auto look_up = [&] {
    std::string value;
    for (int i = 0; i < 100'000; ++i) {
      REQUIRE(engine->get(nullptr, kData, "key", Tier::kDisk, &value, nullptr) == Lookup::kFound);
    }
  };
  look_up();
  const size_t before = mallinfo2().uordblks;
  look_up();
  const size_t after = mallinfo2().uordblks;
  CHECK(after < before + (100 << 10));
}

TEST_CASE("RocksDB: a checkpoint opens as a database of its own") {
  TestEngine engine("rocksdb");
  REQUIRE(engine->capabilities().checkpoint);
  fill(&engine, 1000, 200);
  REQUIRE(engine->flush().ok());
  REQUIRE(engine.put(Space::kMeta, "in memory", "at the time").ok());
  EngineOptions options = engine.options();
  options.path = engine.directory().file("checkpoint");
  REQUIRE(engine->checkpoint(options.path).ok());
  CHECK(engine->checkpoint(options.path).code() == Status::Code::kInvalid);  // it exists
  REQUIRE(engine.put(Space::kMeta, "in memory", "changed").ok());
  REQUIRE(engine.remove(kData, key_of(5)).ok());

  const auto copy = must_open("rocksdb", options);  // while the original is open
  std::string value;
  CHECK(copy->get(nullptr, Space::kMeta, "in memory", Tier::kDisk, &value, nullptr) ==
        Lookup::kFound);
  CHECK(value == "at the time");
  CHECK(copy->get(nullptr, kData, key_of(5), Tier::kDisk, &value, nullptr) == Lookup::kFound);
  CHECK(engine.get(kData, key_of(5)) == "<absent>");
}

TEST_CASE("the other engines say that they cannot make a checkpoint") {
  TestEngine engine(GENERATE("leveldb", "memory"));
  CHECK_FALSE(engine->capabilities().checkpoint);
  CHECK(engine->checkpoint(engine.directory().file("c")).code() == Status::Code::kUnsupported);
}

TEST_CASE("RocksDB: direct reads read the same") {
  EngineOptions options = TestEngine::small_options();
  options.direct_reads = true;
  TestEngine engine("rocksdb", options);
  fill(&engine, 3000, 300);
  REQUIRE(engine->compact(kData, {}).ok());
  engine.reopen();
  for (int i = 0; i < 3000; i += 100) {
    CHECK(engine.get(kData, key_of(i)) == noise(300, static_cast<uint64_t>(i)));
  }
  CHECK(engine.scan(kData).size() == 3000);
  CHECK(engine->stats().bytes_read > 500'000);
}

TEST_CASE("RocksDB: flush and compaction keep to the rate, which changes while they run") {
  EngineOptions options = TestEngine::small_options();
  options.compaction_rate = 1 << 20;
  options.compression = "none";
  TestEngine engine("rocksdb", options);
  fill(&engine, 750, 1000);  // three quarters of a megabyte: it fits a memtable
  CHECK(seconds_of([&] { REQUIRE(engine->flush().ok()); }) > 0.5);
  engine->set_compaction_rate(0);
  fill(&engine, 750, 1000);
  CHECK(seconds_of([&] { REQUIRE(engine->flush().ok()); }) < 0.4);
}

TEST_CASE("RocksDB: whoever stops does not wait for the rate") {
  EngineOptions options = TestEngine::small_options();
  options.compaction_rate = 1 << 20;
  options.compression = "none";
  TestEngine engine("rocksdb", options);
  fill(&engine, 750, 1000);
  std::jthread stops([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    engine->interrupt();
  });
  CHECK(seconds_of([&] { REQUIRE(engine->flush().ok()); }) < 0.4);
}

TEST_CASE("RocksDB: a rate takes effect where there was none") {
  constexpr int64_t kMegabyte = 1 << 20;
  const SharedParts parts = make_shared_parts(TestEngine::small_options());
  rocksdb::RateLimiter& limiter = *parts.rate_limiter;
  // As RocksDB does, until `bytes` have been granted.
  const auto take = [&](int64_t bytes) {
    while (bytes > 0) {
      const int64_t piece = std::min({bytes, kMegabyte, limiter.GetSingleBurstBytes()});
      limiter.Request(piece, rocksdb::Env::IO_LOW, nullptr);
      bytes -= piece;
    }
  };
  take(kMegabyte);
  limiter.SetBytesPerSecond(limiter_rate(200 * kMegabyte));
  CHECK(seconds_of([&] { take(200 * kMegabyte); }) > 0.4);
}

TEST_CASE("RocksDB: the log that a start reads again is bounded, whatever the memory") {
  for (uint64_t cache = 16 << 20; cache <= 64ull << 30; cache *= 4) {
    CHECK(plan_memory(cache, UINT64_MAX).wal_max <= 256 << 20);
  }
}

TEST_CASE("RocksDB: what is written out and rewritten at a time is a small part of any disk") {
  for (uint64_t disk = 256 << 20; disk <= 64ull << 40; disk *= 4) {
    for (uint64_t cache = 16 << 20; cache <= 64ull << 30; cache *= 4) {
      const MemoryPlan memory = plan_memory(cache, disk);
      const TablePlan tables = plan_tables(memory, disk);
      CHECK(memory.memtables <= disk / 16);
      CHECK(tables.level_base <= disk / 16);
      CHECK(tables.compaction <= disk / 16);
      CHECK(tables.table * 4 <= tables.compaction);
      // Level 0 is merged before it is larger than the level that it goes into.
      CHECK(static_cast<uint64_t>(tables.level0_tables) * memory.memtable <= tables.level_base);
    }
  }
}

TEST_CASE("RocksDB: memory stays within its number, which changes while it runs") {
  EngineOptions options;
  options.cache_bytes = 32 << 20;
  TestEngine engine("rocksdb", options);
  uint64_t memory_max = 0;
  uint64_t memtables_max = 0;
  const auto watch = [&] {
    memory_max = std::max(memory_max, engine->stats().memory_bytes);
    memtables_max = std::max(memtables_max, engine->stats().memtable_bytes);
  };
  const auto batch = engine->new_batch();
  for (int i = 0; i < 60'000; ++i) {  // 60 MB over several spaces
    batch->put(kAllSpaces[static_cast<size_t>(i) % kSpaceCount], key_of(i), noise(1000, 1));
    if (i % 64 != 63) continue;
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    batch->clear();
    if (i % 1024 == 1023) watch();
  }
  CHECK(memory_max <= options.cache_bytes * 5 / 4);
  CHECK(memtables_max <= options.cache_bytes);
  for (Space space : kAllSpaces) CHECK(engine.scan(space).size() >= 9000);
  watch();
  CHECK(memory_max <= options.cache_bytes * 5 / 4);

  engine->set_cache_bytes(8 << 20);
  CHECK(engine->stats().cache_capacity == 8 << 20);
  for (Space space : kAllSpaces) CHECK(engine.scan(space).size() >= 9000);
  REQUIRE(engine->flush().ok());
  CHECK(engine->stats().memory_bytes <= 10 << 20);
}

TEST_CASE("RocksDB: memory stays within its number when keys are as long as a block") {
  EngineOptions options;
  options.cache_bytes = 12 << 20;
  TestEngine engine("rocksdb", options);
  constexpr int kKeys = 10'000;  // 60 MB
  const auto long_key = [](int i) { return std::string(6000, 'p') + std::to_string(100'000 + i); };
  uint64_t memory_max = 0;
  for (int i = 0; i < kKeys; ++i) {
    REQUIRE(engine.put(Space::kMeta, long_key(i * 7919 % kKeys), std::to_string(i)).ok());
    if (i % 100 == 0) memory_max = std::max(memory_max, engine->stats().memory_bytes);
  }
  REQUIRE(engine->flush().ok());
  REQUIRE(engine->compact(Space::kMeta, {}).ok());
  memory_max = std::max(memory_max, engine->stats().memory_bytes);
  for (int i = 0; i < kKeys; i += 10) {
    CHECK(engine.get(Space::kMeta, long_key(i * 7919 % kKeys)) == std::to_string(i));
  }
  memory_max = std::max(memory_max, engine->stats().memory_bytes);
  CHECK(memory_max <= 2 * options.cache_bytes);

  // And what repairs reads such an index as well.
  engine.close();
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(engine.options().path)) {
    if (file.path().extension() != ".sst") continue;
    SalvagedTable table(file.path(), FileForm::kRocksdb);
    table.walk({.record = [&](const VersionedKey& key,
                              std::string_view) { found.insert(std::string(key.key)); },
                .damage = [](auto...) { FAIL("damage"); },
                .harmless = [](std::string_view what) { FAIL(what); }});
  }
  CHECK(found.size() == kKeys);
}

namespace {

// What filters the engine's tables have.
std::set<std::string> filters_of(const TestEngine& engine) {
  std::set<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(engine.options().path)) {
    if (entry.path().extension() != ".sst") continue;
    const std::string bytes = content_of(entry.path());
    for (const char* kind : {"fullfilter.", "partitionedfilter."}) {
      if (bytes.find(kind) != std::string::npos) kinds.insert(kind);
    }
  }
  return kinds;
}

const std::set<std::string> kWhole = {"fullfilter."};
const std::set<std::string> kInParts = {"partitionedfilter."};

}  // namespace

TEST_CASE("RocksDB: filters of young tables are whole, those of deep ones are not") {
  TestEngine engine("rocksdb");
  fill(&engine, 1000, 100);
  REQUIRE(engine->flush().ok());
  CHECK(filters_of(engine) == kWhole);
  // What outgrows one level goes to the next one.
  for (int pass = 0; pass < 2; ++pass) {
    fill(&engine, 1500, 50'000);
    REQUIRE(engine->compact(kData, {}).ok());
  }
  CHECK(filters_of(engine).contains("partitionedfilter."));
  CHECK(engine.get(kData, key_of(7)) == noise(50'000, 7));
  CHECK(engine.get(kData, "none") == "<absent>");
}

// The cache would not keep such a block, and each look-up would read it from the file.
TEST_CASE("RocksDB: the filter of millions of short keys is not whole") {
  TestEngine engine("rocksdb");
  const auto load = [&](size_t value_bytes) {
    for (int pass = 0; pass < 3; ++pass) {
      fill(&engine, 20'000, value_bytes);
      REQUIRE(engine->compact(kData, {}).ok());
    }
  };
  load(200);
  CHECK(filters_of(engine) == kWhole);
  load(1);
  CHECK(filters_of(engine) == kInParts);
  fill(&engine, 1000, 1);
  REQUIRE(engine->flush().ok());
  CHECK(filters_of(engine).contains("fullfilter."));  // a memtable has not so many
}

TEST_CASE("RocksDB: a cache hit and a miss are counted") {
  TestEngine engine("rocksdb");
  fill(&engine, 2000, 200);
  REQUIRE(engine->compact(kData, {}).ok());
  engine.reopen();
  const EngineStats cold = engine->stats();
  engine.get(kData, key_of(7));
  const EngineStats read = engine->stats();
  CHECK(read.cache_misses > cold.cache_misses);
  CHECK(read.bytes_read > cold.bytes_read);
  engine.get(kData, key_of(7));
  const EngineStats again = engine->stats();
  CHECK(again.cache_hits > read.cache_hits);
  CHECK(again.cache_misses == read.cache_misses);
  CHECK(again.bytes_read == read.bytes_read);
}

TEST_CASE("RocksDB: a damaged table file is an error, not a wrong answer") {
  TestEngine engine("rocksdb");
  fill(&engine, 2000, 200);
  REQUIRE(engine->compact(kData, {}).ok());
  engine.close();
  for (const auto& entry : std::filesystem::directory_iterator(engine.options().path)) {
    if (entry.path().extension() != ".sst" || entry.file_size() < 100'000) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (int at = 0; at < 100'000; at += 500) file.seekp(at).write("damage", 6);
  }
  const auto opened = must_open("rocksdb", engine.options());
  int errors = 0;
  for (int i = 0; i < 2000; i += 100) {
    std::string value;
    Status error;
    const Lookup lookup = opened->get(nullptr, kData, key_of(i), Tier::kDisk, &value, &error);
    if (lookup == Lookup::kError) {
      ++errors;
      CHECK(error.code() == Status::Code::kCorruption);
    } else {
      CHECK(value == noise(200, static_cast<uint64_t>(i)));
    }
  }
  CHECK(errors > 0);
  const auto cursor = opened->new_cursor(kData, {});
  cursor->seek("");
  while (cursor->valid()) cursor->next();
  CHECK(cursor->outcome() == Lookup::kError);
  CHECK(cursor->status().code() == Status::Code::kCorruption);
}

}  // namespace ingot::storage
