// LevelDB on a disk that fails: it must not append to a torn log, and a full disk heals.
#include <catch2/catch.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <future>
#include <thread>

#include "storage/leveldb/leveldb_engine.h"
#include "storage/leveldb/leveldb_files.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr Space kMeta = Space::kMeta;

// Any thread.
class FaultyDisk : public Disk {
 public:
  std::atomic<bool> no_room = false;    // in advance
  std::atomic<bool> no_append = false;  // half of it is written
  std::atomic<bool> fail_sync = false;
  std::atomic<int> syncs = 0;
  std::atomic<uint64_t> free = UINT64_MAX;  // bytes, as it tells; nothing fails for that
  enum class Tables { kFine, kHeld, kFull };
  std::atomic<Tables> tables = Tables::kFine;  // what their creation meets
  std::atomic<int> tables_left = INT_MAX;      // that can be made until they are full
  void set_tables(Tables what) {
    tables = what;
    tables.notify_all();
  }
  // The Nth call from now on fails with this errno, whatever it is; 0: none does.
  void fail_call(int number, int error) {
    error_ = error;
    left_ = number;
  }
  bool has_failed() const { return error_ == 0; }

  int create(const std::string& path) override {
    if (nth_fails()) return -1;
    if (!path.ends_with(".ldb")) return Disk::create(path);
    tables.wait(Tables::kHeld);
    if (tables == Tables::kFine && tables_left > 0) {
      --tables_left;
      return Disk::create(path);
    }
    errno = ENOSPC;
    return -1;
  }
  ssize_t write(int fd, const char* bytes, size_t count) override {
    if (nth_fails()) return -1;
    if (!no_append) return Disk::write(fd, bytes, count);
    if (count > 1) return Disk::write(fd, bytes, count / 2);
    errno = ENOSPC;
    return -1;
  }
  int sync(int fd) override {
    if (nth_fails()) return -1;
    if (fail_sync) {
      errno = EIO;
      return -1;
    }
    ++syncs;
    return Disk::sync(fd);
  }
  int allocate(int fd, off_t offset, off_t bytes) override {
    if (nth_fails()) return -1;
    if (!no_room) return Disk::allocate(fd, offset, bytes);
    errno = ENOSPC;
    return -1;
  }
  uint64_t free_bytes(const std::string& /*path*/) override { return free; }
  Status sync_directory(const std::string& path) override {
    if (nth_fails()) return {Status::Code::kIo, "as it was told to"};
    return Disk::sync_directory(path);
  }

 private:
  bool nth_fails() {
    if (left_ == 0 || --left_ != 0) return false;
    errno = error_.exchange(0);
    return true;
  }
  std::atomic<int> left_ = 0;
  std::atomic<int> error_ = 0;
};

class FaultyLeveldb {
 public:
  FaultyLeveldb() {
    options_ = TestEngine::small_options();
    options_.path = directory_.file("db");
    options_.on_background_error = [this](const Status& s) { reported_.push_back(s.code()); };
    reopen();
  }

  Engine* operator->() { return engine_.get(); }
  std::vector<std::filesystem::path> tables() const {
    std::vector<std::filesystem::path> tables;
    for (const auto& file : std::filesystem::directory_iterator(options_.path)) {
      if (file.path().extension() == ".ldb") tables.push_back(file.path());
    }
    return tables;
  }
  uint64_t table_bytes() const {
    uint64_t bytes = 0;
    for (const auto& table : tables()) bytes += std::filesystem::file_size(table);
    return bytes;
  }
  FaultyDisk& faults() { return faults_; }
  const std::vector<Status::Code>& reported() const { return reported_; }

  void reopen() {
    const Status status = try_reopen();
    INFO(status.message());
    REQUIRE(status.ok());
  }
  Status try_reopen() {
    engine_.reset();
    auto [engine, status] = open_leveldb_on(options_, &faults_);
    engine_ = std::move(engine);
    return status;
  }

  Status put(const std::string& key, Durability durability = Durability::kBuffered) {
    const auto batch = engine_->new_batch();
    batch->put(kMeta, key, noise(3000, 5));
    return engine_->write(*batch, durability);
  }
  bool has(const std::string& key) {
    std::string value;
    return engine_->get(nullptr, kMeta, key, Tier::kDisk, &value, nullptr) == Lookup::kFound &&
           value == noise(3000, 5);
  }

 private:
  TemporaryDirectory directory_;
  EngineOptions options_;
  FaultyDisk faults_;
  std::vector<Status::Code> reported_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

TEST_CASE("LevelDB: sync() and an empty synced batch reach the disk") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("k").ok());
  const int before = engine.faults().syncs;
  REQUIRE(engine->sync().ok());
  CHECK(engine.faults().syncs == before + 1);
  REQUIRE(engine->write(*engine->new_batch(), Durability::kSynced).ok());
  CHECK(engine.faults().syncs == before + 2);
  engine.reopen();
  CHECK(engine.has("k"));
}

TEST_CASE("LevelDB: after a failed fsync nothing is written until it is opened again") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("before", Durability::kSynced).ok());
  engine.faults().fail_sync = true;
  CHECK(engine.put("during", Durability::kSynced).code() == Status::Code::kIo);
  CHECK_FALSE(engine.has("during"));
  engine.faults().fail_sync = false;
  CHECK(engine.put("after").code() == Status::Code::kIo);
  CHECK(engine->sync().code() == Status::Code::kIo);
  CHECK(engine->flush().code() == Status::Code::kIo);
  CHECK(engine->try_resume().code() == Status::Code::kIo);
  CHECK(engine.reported() == std::vector{Status::Code::kIo});
  CHECK(engine.has("before"));
  engine.reopen();
  CHECK(engine.has("before"));
  CHECK_FALSE(engine.has("after"));
  CHECK(engine.put("after", Durability::kSynced).ok());
}

TEST_CASE("LevelDB: a full disk refuses writes, and what is written after it lasts") {
  FaultyLeveldb engine;
  for (int i = 0; i < 20; ++i) REQUIRE(engine.put("before" + std::to_string(i)).ok());
  engine.faults().no_append = true;
  CHECK(engine.put("during").code() == Status::Code::kNoSpace);
  engine.faults().no_append = false;
  // LevelDB itself would append behind the torn record now, and lose that at the next recovery.
  CHECK(engine.put("during").code() == Status::Code::kNoSpace);
  CHECK_FALSE(engine.has("during"));
  CHECK(engine.reported() == std::vector{Status::Code::kNoSpace});

  REQUIRE(engine->try_resume().ok());
  for (int i = 0; i < 20; ++i) REQUIRE(engine.put("after" + std::to_string(i)).ok());
  engine.reopen();
  for (int i = 0; i < 20; ++i) {
    CHECK(engine.has("before" + std::to_string(i)));
    CHECK(engine.has("after" + std::to_string(i)));
  }
  CHECK_FALSE(engine.has("during"));
}

TEST_CASE("LevelDB: what finds no room in advance is refused, and harms nothing") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("before").ok());
  engine.faults().no_room = true;
  REQUIRE(engine.put("in the room there is").ok());
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = engine.put("much");
  CHECK(status.code() == Status::Code::kNoSpace);
  CHECK(engine->health() == Health::kNoSpace);
  CHECK(engine->sync().ok());
  engine.faults().no_room = false;
  CHECK(engine->try_resume().ok());
  CHECK(engine->health() == Health::kHealthy);
  CHECK(engine.put("after").ok());
}

TEST_CASE("LevelDB: a table waits for space, and nothing waits for it") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("before").ok());
  engine.faults().no_append = true;
  std::thread flush([&] { CHECK(engine->flush().ok()); });
  while (engine->health() == Health::kHealthy) std::this_thread::sleep_for(1ms);
  CHECK(engine->try_resume().code() == Status::Code::kNoSpace);
  CHECK(engine->compact(kMeta, {}).code() == Status::Code::kNoSpace);
  engine.faults().no_append = false;
  flush.join();
  CHECK(engine->try_resume().ok());
  CHECK(engine.put("after", Durability::kSynced).ok());
}

TEST_CASE("LevelDB: a stop does not wait for the space that a table waits for") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("before", Durability::kSynced).ok());
  engine.faults().no_append = true;
  auto compaction = std::async(std::launch::async, [&] { return engine->compact(kMeta, {}); });
  while (engine->health() == Health::kHealthy) std::this_thread::sleep_for(1ms);
  engine->interrupt();
  CHECK(compaction.wait_for(10s) == std::future_status::ready);
  engine.faults().no_append = false;
  CHECK_FALSE(compaction.get().ok());
  engine.reopen();
  CHECK(engine.has("before"));
}

TEST_CASE("LevelDB: a write that waits for a table is refused when that finds no space") {
  using Tables = FaultyDisk::Tables;
  FaultyLeveldb engine;
  engine.faults().set_tables(Tables::kHeld);
  std::atomic<int> written = 0;
  auto writing = std::async(std::launch::async, [&] {
    Status status = engine.put("0");
    while (status.ok() && written < 5000) status = engine.put(std::to_string(++written));
    return status;
  });
  for (int seen = -1; seen != written; std::this_thread::sleep_for(300ms)) seen = written;
  engine.faults().set_tables(Tables::kFull);
  const bool refused = writing.wait_for(3s) == std::future_status::ready;
  CHECK(refused);
  engine.faults().set_tables(Tables::kFine);
  CHECK(writing.get().code() == Status::Code::kNoSpace);
  for (int i = 0; i < 100 && !engine->try_resume().ok(); ++i) std::this_thread::sleep_for(50ms);
  CHECK(engine.put("after").ok());
  engine.reopen();
  for (int i = 0; i < written; ++i) CHECK(engine.has(std::to_string(i)));
}

TEST_CASE("LevelDB: tables that a read kept are removed for a compaction that waits for space") {
  constexpr int kKeys = 6000;  // of several tables
  FaultyLeveldb engine;
  const auto put_all = [&] {
    for (int i = 0; i < kKeys; ++i) REQUIRE(engine.put(std::to_string(i)).ok());
  };
  const auto look_for = [&](std::chrono::milliseconds time) {
    for (const auto end = std::chrono::steady_clock::now() + time;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms)) {
      engine->look_at_space();
    }
  };
  put_all();
  REQUIRE(engine->compact(kMeta, {}).ok());
  const uint64_t once = engine.table_bytes();
  const TemporaryDirectory directory;
  const std::string link = directory.file("link");
  std::filesystem::create_hard_link(engine.tables().front(), link);
  const uint64_t linked = std::filesystem::file_size(link);
  auto cursor = engine->new_cursor(kMeta, {});
  cursor->seek("");
  put_all();
  REQUIRE(engine->compact(kMeta, {}).ok());
  for (const char* key : {"0", "5999"}) REQUIRE(engine.put(key).ok());
  engine.faults().tables_left = 2;  // the memtable's, and one of the compaction
  auto compaction = std::async(std::launch::async, [&] { return engine->compact(kMeta, {}); });
  while (engine->health() == Health::kHealthy) std::this_thread::sleep_for(1ms);
  look_for(1500ms);
  CHECK(engine.table_bytes() > once * 2);
  int read = 0;
  for (; cursor->valid(); cursor->next()) ++read;
  CHECK(read == kKeys);
  cursor.reset();
  look_for(2500ms);
  CHECK(engine.table_bytes() < once * 5 / 3);
  CHECK(std::filesystem::hard_link_count(link) == 1);
  CHECK(std::filesystem::file_size(link) == linked);
  engine.faults().tables_left = INT_MAX;
  CHECK(compaction.get().ok());
  CHECK(engine.table_bytes() < once * 5 / 4);
  engine.reopen();
  for (int i = 0; i < kKeys; ++i) CHECK(engine.has(std::to_string(i)));
}

TEST_CASE("LevelDB: what is dead goes with less room than the largest compaction takes") {
  constexpr int kKeys = 8000;
  FaultyLeveldb engine;
  for (int i = 0; i < kKeys; ++i) REQUIRE(engine.put(std::to_string(i)).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  const uint64_t full = engine.table_bytes();
  REQUIRE(full > 10'000'000);
  const auto keep_each = [&](int nth) {
    const auto batch = engine->new_batch();
    for (int i = 0; i < kKeys; ++i) {
      if (i % nth != 0) batch->remove(kMeta, std::to_string(i));
    }
    REQUIRE(engine->write(*batch, Durability::kSynced).ok());
  };
  const EngineStats stats = engine->stats();
  engine.faults().free = stats.make_room_bytes + full / 2;
  CHECK(engine.faults().free < stats.headroom_bytes * 2 / 3);
  // It would write half of all that, and not end.
  keep_each(2);
  for (int piece = 0; piece < 4; ++piece) REQUIRE(engine->make_room().ok());
  CHECK(engine.table_bytes() > full * 9 / 10);
  keep_each(10);
  const bool reopened = GENERATE(false, true);
  if (reopened) engine.reopen();
  for (int piece = 0; piece < 4; ++piece) REQUIRE(engine->make_room().ok());
  CHECK(engine.table_bytes() < full / 5);
  for (int i = 0; i < kKeys; i += 5) CHECK(engine.has(std::to_string(i)) == (i % 10 == 0));
}

TEST_CASE("LevelDB: tables leave what the next opening needs") {
  FaultyLeveldb engine;
  REQUIRE(engine.put("k").ok());
  engine.faults().free = 1 << 20;  // so much that a table could be written
  auto flushing = std::async(std::launch::async, [&] { return engine->flush(); });
  CHECK(flushing.wait_for(500ms) == std::future_status::timeout);
  CHECK(engine->health() == Health::kNoSpace);
  engine->interrupt();
  CHECK(flushing.wait_for(5s) == std::future_status::ready);
  (void)flushing.get();
  engine.reopen();
  CHECK(engine.has("k"));
}

TEST_CASE("LevelDB: whichever call to the disk fails, nothing acknowledged is lost") {
  const int error = GENERATE(ENOSPC, EIO);
  bool failed = true;
  int number = 0;
  while (failed) {
    INFO("call " << ++number << ", errno " << error);
    FaultyLeveldb engine;
    engine.faults().fail_call(number, error);
    std::vector<std::string> acknowledged;
    const auto put = [&](const std::string& key, Durability durability) {
      if (engine.put(key, durability).ok()) acknowledged.push_back(key);
    };
    for (int i = 0; i < 4; ++i) put("a" + std::to_string(i), Durability::kBuffered);
    (void)engine->sync();
    (void)engine->flush();
    for (int i = 0; i < 3; ++i) put("b" + std::to_string(i), Durability::kSynced);
    failed = engine.faults().has_failed();
    engine.faults().fail_call(0, 0);
    CHECK((failed || acknowledged.size() == 7));
    if (engine->health() == Health::kNoSpace) {
      for (int i = 0; i < 100 && !engine->try_resume().ok(); ++i) std::this_thread::sleep_for(10ms);
      put("healed", Durability::kSynced);
      CHECK(acknowledged.back() == "healed");
    }
    for (const std::string& key : acknowledged) CHECK(engine.has(key));
    engine.reopen();
    for (const std::string& key : acknowledged) CHECK(engine.has(key));
    CHECK(engine.put("after", Durability::kSynced).ok());
  }
  CHECK(number > 10);
}

TEST_CASE("LevelDB: whatever fails while it opens, the next opening finds everything") {
  bool failed = true;
  int number = 1;
  for (; failed && number < 200; ++number) {
    CAPTURE(number);
    FaultyLeveldb engine;
    CHECK(engine.put("before", Durability::kSynced).ok());
    engine.faults().fail_call(number, EIO);
    const Status status = engine.try_reopen();
    failed = engine.faults().has_failed();
    if (status.ok()) CHECK(engine.has("before"));
    engine.faults().fail_call(0, 0);
    engine.reopen();
    CHECK(engine.has("before"));
    CHECK(engine.put("after", Durability::kSynced).ok());
  }
  CHECK(number > 5);
}

}  // namespace ingot::storage
