// What RocksDB has after the power failed: all that was synced, and no hole before it.
#include <catch2/catch.hpp>

#include "storage/rocksdb/rocksdb_engine.h"
#include "tests/storage/synced_file_system.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

class PowerLoss {
 public:
  PowerLoss() {
    options_ = TestEngine::small_options();
    options_.path = directory_.file("db");
    auto [engine, status] = RocksdbEngine::open(options_, make_synced_env(sizes_));
    REQUIRE(status.ok());
    engine_ = std::move(engine);
  }

  Engine* operator->() { return engine_.get(); }

  // Record `i`, in one batch over two spaces.
  void put(int i, Durability durability) {
    const auto batch = engine_->new_batch();
    batch->put(Space::kMeta, std::to_string(i), noise(700, 1));
    batch->put(Space::kData, std::to_string(i), "v");
    REQUIRE(engine_->write(*batch, durability).ok());
  }

  // The power fails now. How many records, from 0 on, are there; no other must be.
  int records_after() {
    EngineOptions options = options_;
    options.path = directory_.file("after" + std::to_string(++losses_));
    sizes_->copy_synced(options_.path, options.path);
    const auto after = must_open("rocksdb", options);
    const auto has = [&](Space space, int i) {
      std::string value;
      return after->get(nullptr, space, std::to_string(i), Tier::kDisk, &value, nullptr) ==
             Lookup::kFound;
    };
    int count = 0;
    while (has(Space::kMeta, count)) ++count;
    for (int i = 0; i < 5000; ++i) {
      REQUIRE(has(Space::kMeta, i) == (i < count));
      REQUIRE(has(Space::kData, i) == (i < count));  // a batch is there in every space or in none
    }
    return count;
  }

 private:
  TemporaryDirectory directory_;
  EngineOptions options_;
  std::shared_ptr<SyncedSizes> sizes_ = std::make_shared<SyncedSizes>();
  std::unique_ptr<Engine> engine_;
  int losses_ = 0;
};

}  // namespace

TEST_CASE("RocksDB: a power loss takes only what was not synced") {
  PowerLoss engine;
  int next = 0;
  for (int i = 0; i < 50; ++i) engine.put(next++, Durability::kSynced);
  CHECK(engine.records_after() == 50);
  for (int i = 0; i < 50; ++i) engine.put(next++, Durability::kBuffered);
  const int kept = engine.records_after();
  CHECK(kept >= 50);
  CHECK(kept < 100);  // else this test removes nothing
  REQUIRE(engine->sync().ok());
  CHECK(engine.records_after() == 100);

  SECTION("an empty synced batch makes what precedes it durable") {
    for (int i = 0; i < 50; ++i) engine.put(next++, Durability::kBuffered);
    REQUIRE(engine->write(*engine->new_batch(), Durability::kSynced).ok());
    CHECK(engine.records_after() == 150);
  }
  SECTION("across flushes and compactions") {
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 500; ++i) engine.put(next++, Durability::kBuffered);
      engine.put(next++, Durability::kSynced);
      const int synced = next;
      for (int i = 0; i < 20; ++i) engine.put(next++, Durability::kBuffered);
      CHECK(engine.records_after() >= synced);
      REQUIRE(engine->flush().ok());
      CHECK(engine.records_after() == next);
    }
    REQUIRE(engine->compact(Space::kMeta, {}).ok());
    CHECK(engine.records_after() == next);
  }
}

}  // namespace ingot::storage
