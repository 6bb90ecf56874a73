// The collector over every engine: what is dead goes, what is alive or still seen stays, and a stop
// at any point forgets nothing.
#include "src/data/collector.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "storage/codec.h"
#include "tests/src/failing_engine.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::data {
namespace {

using storage::CollectionId;
using storage::GarbageKind;
using storage::KeyspaceId;
using storage::Space;

constexpr std::string_view kMarker{"\0", 1};
constexpr size_t kMany = Collector::kRoundIds;  // so many are collected without waiting for more

std::vector<std::string> engines() {
#ifdef __SANITIZE_THREAD__
  return {"memory"};  // the others are not built for the thread sanitizer
#else
  return {"rocksdb", "leveldb", "memory"};
#endif
}

void eventually(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  REQUIRE(done());
}

[[maybe_unused]] std::string noise(size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t state = 88172645463325252u;
  for (char& c : text) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return text;
}

// A store on an engine of its own, and a collector that the test starts.
class Data {
 public:
  explicit Data(std::string name, size_t remembered_max = Collector::kRememberedMax)
      : name_(std::move(name)), remembered_max_(remembered_max) {
    open();
  }

  void open() {
    auto [engine, opened] = storage::open_engine(
        name_, {.path = directory_.file("db"), .cache_bytes = 16 << 20, .compression = "none"});
    REQUIRE(opened.ok());
    auto failing = std::make_unique<storage::FailingEngine>(std::move(engine));
    engine_ = failing.get();
    storage::Status status;
    store_ = Store::open(
        std::move(failing), 16, [] { return int64_t{1}; }, &status);
    REQUIRE(status.ok());
    collector_ = std::make_unique<Collector>(*store_, remembered_max_);
  }
  // A new process: the memory engine, which would forget everything, stays open.
  void restart() {
    collector_.reset();
    if (name_ == "memory") {
      collector_ = std::make_unique<Collector>(*store_, remembered_max_);
      return;
    }
    store_.reset();
    open();
  }

  // Starts the collector, and returns when it has nothing to do: its first look at the garbage
  // space is over, what is dropped from now on it hears by dropped().
  void start() {
    create(1, 1);
    note({1});
    collector_->start();
    wait_until_clean();
  }

  storage::FailingEngine& engine() { return *engine_; }
  Store& store() { return *store_; }
  Collector& collector() { return *collector_; }

  void change(const std::function<void(storage::Batch&)>& fill) {
    auto batch = engine_->new_batch();
    fill(*batch);
    REQUIRE(engine_->write(*batch, storage::Durability::kBuffered).ok());
  }
  // The store gives out no id up to this one any more.
  void use_ids(CollectionId last) {
    storage::Status failure;
    while (last_id_ < last && failure.ok()) last_id_ = store_->ids().next(&failure);
    REQUIRE(failure.ok());
  }
  // Two elements and an order entry for each id of [first, first + count).
  void create(CollectionId first, size_t count) {
    use_ids(first + count - 1);
    change([&](storage::Batch& batch) {
      for (CollectionId id = first; id < first + count; ++id) {
        batch.put(Space::kData, storage::chunk_key(id, 0), "zero");
        batch.put(Space::kData, storage::chunk_key(id, 7), "seven");
        batch.put(Space::kOrder, storage::chunk_key(id, 1), "one");
      }
    });
  }
  void note(const std::vector<CollectionId>& ids) {
    change([&](storage::Batch& batch) {
      for (CollectionId id : ids) {
        batch.put(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, id), kMarker);
      }
    });
  }
  void drop(const std::vector<CollectionId>& ids) {
    note(ids);
    collector_->dropped(ids, {});
  }
  void put_key(KeyspaceId keyspace, const std::string& key, CollectionId id) {
    storage::Metadata metadata;
    metadata.payload = "small";
    if (id != 0) metadata.collection = {.id = id, .count = 2};
    if (id != 0) metadata.payload = {};
    std::string record;
    storage::encode_metadata(metadata, &record);
    change([&](storage::Batch& batch) {
      batch.put(Space::kMeta, storage::meta_key(keyspace, key), record);
    });
  }
  void drop_keyspace(KeyspaceId id) {
    change([&](storage::Batch& batch) {
      batch.put(Space::kGarbage, storage::garbage_key(GarbageKind::kKeyspace, id), kMarker);
    });
    collector_->dropped({}, {&id, 1});
  }

  size_t count(Space space, const std::string& begin = {}, const std::string& end = {},
               const storage::Snapshot* snapshot = nullptr) {
    auto cursor = engine_->new_cursor(space, {.snapshot = snapshot, .lower = begin, .upper = end});
    size_t found = 0;
    for (cursor->seek(begin); cursor->valid(); cursor->next()) ++found;
    REQUIRE(cursor->status().ok());
    return found;
  }
  size_t records_of(CollectionId id, const storage::Snapshot* snapshot = nullptr) {
    const std::string begin = storage::collection_begin(id);
    const std::string end = storage::collection_end(id);
    return count(Space::kData, begin, end, snapshot) + count(Space::kOrder, begin, end, snapshot);
  }
  size_t records_of_keyspace(KeyspaceId id) {
    return count(Space::kMeta, storage::meta_key(id, {}), storage::meta_key_end(id));
  }
  // An id is gone when nothing of it is in a memtable either: flushes come sooner here than they do
  // by themselves.
  void wait_until_clean() { wait_for_garbage(0); }
  void wait_for_garbage(size_t records) {
    auto flushed = std::chrono::steady_clock::now();
    eventually([&] {
      if (std::chrono::steady_clock::now() - flushed > std::chrono::milliseconds(100)) {
        REQUIRE(engine_->flush().ok());
        flushed = std::chrono::steady_clock::now();
      }
      return collector_->pending() == 0 && count(Space::kGarbage) == records;
    });
  }

 private:
  const std::string name_;
  const size_t remembered_max_;
  storage::TemporaryDirectory directory_;
  storage::FailingEngine* engine_ = nullptr;  // the store's
  std::unique_ptr<Store> store_;
  std::unique_ptr<Collector> collector_;
  CollectionId last_id_ = 0;
};

std::vector<CollectionId> every_second(CollectionId first, size_t count) {
  std::vector<CollectionId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(first + 2 * i);
  return ids;
}

TEST_CASE("dropped collections go, their neighbours stay") {
  Data data(GENERATE(from_range(engines())));
  data.start();
  data.create(2, 2 * kMany);
  data.drop(every_second(2, kMany));
  data.wait_until_clean();
  CHECK(data.collector().reclaimed() == 1 + kMany);
  for (CollectionId id = 2; id < 2 + 2 * kMany; ++id) {
    REQUIRE(data.records_of(id) == (id % 2 == 0 ? 0 : 3));
  }
}

#ifndef __SANITIZE_THREAD__
TEST_CASE("the space of a large collection comes back") {
  Data data(GENERATE(std::string("rocksdb"), std::string("leveldb")));
  data.start();
  data.use_ids(5);
  const std::string chunk = noise(16 << 10);
  for (uint32_t i = 0; i < 1000; ++i) {
    data.change(
        [&](storage::Batch& batch) { batch.put(Space::kData, storage::chunk_key(5, i), chunk); });
  }
  REQUIRE(data.engine().flush().ok());
  REQUIRE(data.engine().stats().disk_bytes > 15'000'000);
  data.drop({5});  // and nobody flushes anything
  eventually([&] { return data.engine().stats().disk_bytes < 2'000'000; });
  data.wait_until_clean();
  CHECK(data.records_of(5) == 0);
}
#endif

TEST_CASE("what an older view sees stays until the view is gone") {
  Data data(GENERATE(from_range(engines())));
  const bool only_pinned = GENERATE(false, true);
  data.start();
  data.create(2, kMany);
  auto view = only_pinned ? nullptr : data.store().view();
  auto pin = only_pinned ? data.store().pin() : nullptr;
  uint64_t epoch = data.store().advance_epoch();
  std::vector<CollectionId> ids;
  for (CollectionId id = 2; id < 2 + kMany; ++id) ids.push_back(id);
  data.drop(ids);
  // Until the collector has taken them up, then a few of its looks at who is still reading.
  eventually([&] { return data.store().advance_epoch() != ++epoch; });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const storage::Snapshot* snapshot = view ? view->snapshot() : nullptr;
  for (CollectionId id : ids) REQUIRE(data.records_of(id, snapshot) == 3);
  CHECK(data.collector().pending() == kMany);

  auto younger = data.store().view();  // does not hold up what was dropped before it
  view.reset();
  pin.reset();
  data.wait_until_clean();
  CHECK(data.count(Space::kData) + data.count(Space::kOrder) == 0);
}

TEST_CASE("a dead keyspace goes with everything it owns") {
  Data data(GENERATE(from_range(engines())));
  constexpr size_t kKeys = 20'000;  // more than one walk of the collector
  constexpr size_t kOwned = 50;
  data.create(1, 2 * kOwned);
  data.change([&](storage::Batch& batch) {
    storage::Metadata metadata;
    metadata.payload = "small";
    std::string record;
    storage::encode_metadata(metadata, &record);
    for (size_t i = 0; i < kKeys; ++i) {
      batch.put(Space::kMeta, storage::meta_key(3, "key" + std::to_string(i)), record);
    }
    storage::encode_counts({.keys = kKeys, .expires = 0}, &record);
    batch.put(Space::kSystem, storage::counts_key(3), record);
    batch.put(Space::kSystem, storage::counts_key(4), record);
  });
  for (CollectionId id = 1; id <= kOwned; ++id) {
    data.put_key(3, "key" + std::to_string(id * 391), id);
    data.put_key(4, "key" + std::to_string(id), kOwned + id);
  }
  const size_t system_records = data.count(Space::kSystem);
  data.collector().start();
  data.drop_keyspace(3);
  data.wait_until_clean();
  CHECK(data.records_of_keyspace(3) == 0);
  CHECK(data.records_of_keyspace(4) == kOwned);
  for (CollectionId id = 1; id <= 2 * kOwned; ++id) {
    REQUIRE(data.records_of(id) == (id <= kOwned ? 0 : 3));
  }
  CHECK(data.count(Space::kSystem, storage::counts_key(3), storage::counts_key(4)) == 0);
  CHECK(data.count(Space::kSystem) <= system_records);
}

// What there is to collect: collections with a record, and a keyspace that owns others.
void leave_garbage(Data& data) {
  data.create(1, 40);
  for (CollectionId id = 1; id <= 40; ++id) {
    if (id <= 10) data.put_key(3, "dies" + std::to_string(id), id);
    if (id > 10 && id <= 20) data.put_key(4, "lives" + std::to_string(id), id);
  }
  data.put_key(3, "inline", 0);
  data.note(every_second(21, 10));
  data.drop_keyspace(3);
}

void check_collected(Data& data) {
  data.wait_until_clean();
  CHECK(data.records_of_keyspace(3) == 0);
  CHECK(data.records_of_keyspace(4) == 10);
  for (CollectionId id = 1; id <= 40; ++id) {
    const bool dead = id <= 10 || (id > 20 && id % 2 == 1);
    REQUIRE(data.records_of(id) == (dead ? 0 : 3));
  }
}

TEST_CASE("a new start takes up what the last run left") {
  Data data(GENERATE(from_range(engines())));
  leave_garbage(data);
  data.restart();
  data.collector().start();
  check_collected(data);
}

TEST_CASE("a stop at any change forgets nothing and takes nothing alive") {
  bool failed = true;
  int64_t changes = 0;
  for (; failed; ++changes) {
    Data data("memory");
    leave_garbage(data);
    data.engine().fail_after(changes);
    data.collector().start();
    eventually([&] { return data.engine().failed() || data.count(Space::kGarbage) == 0; });
    failed = data.engine().failed();
    for (CollectionId id = 11; id <= 20; ++id) REQUIRE(data.records_of(id) == 3);
    data.collector().stop();
    data.engine().fail_after(-1);
    data.restart();
    data.collector().start();
    check_collected(data);
  }
  CHECK(changes > 8);  // the loop met every step
}

TEST_CASE("a collection that is being built is left alone") {
  Data data(GENERATE(from_range(engines())));
  storage::Status failure;
  const CollectionId linked = data.collector().reserve(&failure);
  const CollectionId given_up = data.collector().reserve(&failure);
  data.create(linked, 1);
  data.create(given_up, 1);
  data.note({linked, given_up});
  data.create(1000, 1);
  data.note({1000});
  data.collector().start();
  data.wait_for_garbage(2);
  CHECK(data.records_of(1000) == 0);
  CHECK(data.records_of(linked) + data.records_of(given_up) == 6);

  data.change([&](storage::Batch& batch) {
    batch.remove(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, linked));
  });
  data.collector().release(linked);
  data.collector().release(given_up);
  data.drop_keyspace(9);  // makes it look at everything
  data.wait_until_clean();
  CHECK(data.records_of(linked) == 3);
  CHECK(data.records_of(given_up) == 0);
}

TEST_CASE("a walk through a dead keyspace goes on where a crash ended it") {
  Data data("memory");
  constexpr size_t kKeys = 100'000;
  data.change([&](storage::Batch& batch) {
    storage::Metadata metadata;
    metadata.payload = "small";
    std::string record;
    storage::encode_metadata(metadata, &record);
    for (size_t i = 0; i < kKeys; ++i) {
      batch.put(Space::kMeta, storage::meta_key(3, "key" + std::to_string(i)), record);
    }
  });
  data.drop_keyspace(3);
  data.engine().fail_after(5);  // ids of both kinds are reserved, then some of the pieces
  data.collector().start();
  eventually([&] { return data.engine().failed(); });
  data.collector().stop();
  data.engine().fail_after(-1);
  // Less than a whole walk is left to read.
  data.restart();
  data.engine().fail_reads_after(kKeys * 3 / 4);
  data.collector().start();
  data.wait_until_clean();
  CHECK_FALSE(data.engine().read_failed());
  CHECK(data.records_of_keyspace(3) == 0);
}

TEST_CASE("more drops than it remembers") {
  constexpr size_t kRemembered = 4 * kMany;
  constexpr size_t kFlood = kRemembered + 10;
  Data data(GENERATE(from_range(engines())), kRemembered);
  data.start();
  auto view = data.store().view();
  data.create(2, kMany);
  data.create(kFlood + kMany, 1);
  std::vector<CollectionId> ids;
  for (CollectionId id = 2; id < kMany + 2; ++id) ids.push_back(id);
  uint64_t epoch = data.store().advance_epoch();
  data.drop(ids);  // it waits for the view with these
  CHECK(data.collector().pending() == ids.size());
  // A flood before it has them in hand, which takes an epoch, would end in one sweep for all.
  while (data.store().advance_epoch() == epoch + 1) {
    ++epoch;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ids.clear();
  for (CollectionId id = kMany; id < kMany + kFlood; ++id) ids.push_back(id);
  data.drop(ids);
  CHECK(data.collector().pending() < kRemembered / 2);
  view.reset();
  data.wait_until_clean();
  CHECK(data.count(Space::kData) == 2);
  CHECK(data.records_of(kFlood + kMany) == 3);
}

}  // namespace
}  // namespace ingot::data
