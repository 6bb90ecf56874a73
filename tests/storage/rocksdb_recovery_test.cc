// RocksDB on a full disk that gets space again: what is under way meanwhile, and what comes after.
#include <rocksdb/env.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "storage/rocksdb/rocksdb_status.h"
#include "tests/storage/faulty_engine.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr Space kMeta = Space::kMeta;

// Keeps each thread busy that RocksDB flushes in, until it is destroyed.
class BusyFlushThreads {
 public:
  BusyFlushThreads() {
    const int threads = env_->GetBackgroundThreads(rocksdb::Env::HIGH);
    for (int i = 0; i < threads; ++i) {
      auto* copy = new std::shared_future<void>(released_);
      const auto wait = [](void* raw) {
        const std::unique_ptr<std::shared_future<void>> job(
            static_cast<std::shared_future<void>*>(raw));
        job->wait();
      };
      env_->Schedule(wait, copy, rocksdb::Env::HIGH);
    }
  }
  ~BusyFlushThreads() { release_.set_value(); }

 private:
  rocksdb::Env* const env_ = rocksdb::Env::Default();
  std::promise<void> release_;
  const std::shared_future<void> released_{release_.get_future()};
};

std::ptrdiff_t files_of(const std::string& path, std::string_view extension) {
  const auto entries = std::filesystem::directory_iterator(path);
  return std::ranges::count_if(
      entries, [&](const auto& entry) { return entry.path().extension() == extension; });
}

// Until RocksDB has put a memtable aside, to be flushed, and begun another log; how many records
// that took.
size_t fill_memtable(FaultyEngine& engine) {
  size_t records = 0;
  const std::string& path = engine->options().path;
  for (const auto before = files_of(path, ".log"); files_of(path, ".log") == before; ++records) {
    REQUIRE(engine->put(kMeta, "k" + std::to_string(records), noise(4000, records)).ok());
  }
  return records;
}

// As fill_memtable, with an append that fails behind it.
size_t fill_memtable_and_disk(FaultyEngine& engine) {
  const size_t records = fill_memtable(engine);
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  return records;
}

void must_heal(Engine* engine) {
  const Status healed = heal(engine);
  INFO(healed.message());
  REQUIRE(healed.ok());
}

// Of a full disk, which stops RocksDB.
void recover(FaultyEngine& engine) {
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  engine.set_faults("");
  must_heal(&**engine);
}

}  // namespace

TEST_CASE("RocksDB: a full disk refuses writes and heals once there is space") {
  FaultyEngine engine;
  std::map<std::string, std::string> acknowledged;
  int next = 0;
  const auto put = [&](Durability durability) {
    const std::string key = "k" + std::to_string(next++);
    const Status status = engine->put(kMeta, key, noise(2000, 7), durability);
    if (status.ok()) acknowledged[key] = noise(2000, 7);
    return status;
  };
  for (int i = 0; i < 100; ++i) REQUIRE(put(Durability::kBuffered).ok());
  engine.set_faults("no-space");
  const auto durability = GENERATE(Durability::kBuffered, Durability::kSynced);
  for (int i = 0; i < 5; ++i) CHECK(put(durability).code() == Status::Code::kNoSpace);
  REQUIRE_FALSE(engine.reported().empty());
  CHECK(engine.reported().front() == Status::Code::kNoSpace);
  CHECK((*engine)->try_resume().code() == Status::Code::kNoSpace);
  CHECK(engine->scan(kMeta).size() == 100);  // reads go on; no failed write shows

  engine.set_faults("");
  must_heal(&**engine);
  for (int i = 0; i < 100; ++i) REQUIRE(put(durability).ok());
  CHECK(engine->scan(kMeta) == Records(acknowledged.begin(), acknowledged.end()));
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records(acknowledged.begin(), acknowledged.end()));
}

TEST_CASE("RocksDB: a disk that fills up during a flush heals, too") {
  FaultyEngine engine;
  for (int i = 0; i < 500; ++i) {
    REQUIRE(engine->put(kMeta, "k" + std::to_string(i), noise(1000, 7)).ok());
  }
  engine.set_faults("no-space");
  CHECK((*engine)->flush().code() == Status::Code::kNoSpace);
  CHECK(engine->put(kMeta, "more", "v").code() == Status::Code::kNoSpace);
  engine.set_faults("");
  must_heal(&**engine);
  CHECK(engine->put(kMeta, "more", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == 501);
}

TEST_CASE("RocksDB: a disk that fills up while a flush is scheduled heals") {
  FaultyEngine engine;
  std::optional<BusyFlushThreads> busy(std::in_place);
  const size_t filled = fill_memtable_and_disk(engine);
  busy.reset();  // it begins while RocksDB is stopped
  std::this_thread::sleep_for(50ms);
  engine.set_faults("");
  must_heal(&**engine);
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == filled + 1);
}

TEST_CASE("RocksDB: a recovery whose flush never begins ends, and so does the engine") {
  FaultyEngine engine;
  std::optional<BusyFlushThreads> busy(std::in_place);
  const size_t filled = fill_memtable_and_disk(engine);
  engine.set_faults("");
  std::thread releaser([&] {
    std::this_thread::sleep_for(6s);
    busy.reset();
  });
  CHECK(heal(&**engine).code() == Status::Code::kIo);
  releaser.join();
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kIo);
  CHECK(engine->scan(kMeta).size() == filled);
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == filled);
  REQUIRE(engine->put(kMeta, "after", "v").ok());
}

TEST_CASE("RocksDB: who waits for a flush hears that the disk is full") {
  FaultyEngine engine;
  if (GENERATE(false, true)) recover(engine);  // for the second time
  std::optional<BusyFlushThreads> busy(std::in_place);
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  auto flushed = std::async(std::launch::async, [&] { return (*engine)->flush(); });
  std::this_thread::sleep_for(50ms);  // its memtable is put aside
  REQUIRE(engine->put(kMeta, "since", "v").ok());
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  busy.reset();
  REQUIRE(flushed.wait_for(10s) == std::future_status::ready);
  CHECK(flushed.get().code() == Status::Code::kNoSpace);
  CHECK((*engine)->flush().code() == Status::Code::kNoSpace);  // and who asks for another
  CHECK((*engine)->compact(kMeta, {}).code() == Status::Code::kNoSpace);
  CHECK((*engine)->checkpoint(engine->directory().file("copy")).code() == Status::Code::kNoSpace);
  engine.set_faults("");
  must_heal(&**engine);
  CHECK((*engine)->flush().ok());
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records{{"before", "v"}, {"since", "v"}});
}

TEST_CASE("RocksDB: after a recovery nothing is gone that a flush is still to write") {
  FaultyEngine engine;
  recover(engine);
  const auto kind = GarbageKind::kCollection;
  REQUIRE(engine->put(Space::kOrder, element_key(1, "x"), "v").ok());
  REQUIRE((*engine)->add_dead(kind, std::array{uint64_t{1}}) == 1);
  std::optional<BusyFlushThreads> busy(std::in_place);
  auto flushed = std::async(std::launch::async, [&] { return (*engine)->flush(); });
  CHECK(flushed.wait_for(100ms) == std::future_status::timeout);
  Reclaimed done;
  REQUIRE((*engine)->reclaim(kind, &done).ok());
  CHECK(done.gone == std::vector<uint64_t>());
  busy.reset();
  CHECK(flushed.get().ok());
  REQUIRE((*engine)->reclaim(kind, &done).ok());
  CHECK(done.gone == std::vector<uint64_t>{1});
  CHECK(engine->scan(Space::kOrder) == Records());
}

// What RocksDB says while a compaction that found no space holds all writes back.
TEST_CASE(
    "RocksDB: a write that was held back until the disk was full is refused for lack of space") {
  const auto full = rocksdb::Status::NoSpace("While appending", std::strerror(ENOSPC));
  CHECK(to_status(rocksdb::Status::Incomplete(full.ToString())).code() == Status::Code::kNoSpace);
  CHECK(to_status(rocksdb::Status::Incomplete("stalled")).code() == Status::Code::kIo);
}

TEST_CASE("RocksDB: a full disk met by the first write after a flush ends writing") {
  FaultyEngine engine;
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  REQUIRE((*engine)->flush().ok());
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kIo);
  CHECK((*engine)->health() == Health::kUndecided);
  engine.reopen();
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  CHECK(engine->scan(kMeta) == Records{{"after", "v"}, {"before", "v"}});
}

TEST_CASE("RocksDB: a recovery waits for space that is being reclaimed") {
  FaultyEngine engine;
  const auto kind = GarbageKind::kCollection;
  for (uint64_t id = 1; id <= 2; ++id) {
    for (int i = 0; i < 2000; ++i) {
      const std::string key = element_key(id, std::to_string(i));
      REQUIRE(engine->put(Space::kData, key, noise(2000, id * 10'000 + i)).ok());
    }
  }
  REQUIRE((*engine)->flush().ok());
  REQUIRE((*engine)->compact(Space::kData, {}).ok());
  REQUIRE((*engine)->add_dead(kind, std::array{uint64_t{1}}) == 1);
  REQUIRE(engine->put(kMeta, "since", "v").ok());
  engine.set_faults("slow-append");
  const std::string& path = engine->options().path;
  const auto tables = files_of(path, ".sst");
  auto reclaimed = std::async(std::launch::async, [&] {
    Reclaimed done;
    return (*engine)->reclaim(kind, &done);
  });
  for (int i = 0; i < 3000 && files_of(path, ".sst") <= tables; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(1s);  // it appends, for seven seconds
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  engine.set_faults("");
  must_heal(&**engine);
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  CHECK(reclaimed.get().ok());
  CHECK((*engine)->stats().reclaim_rewritten > 0);
}

}  // namespace ingot::storage
