// RocksDB on a disk that fails: a failing fsync, and a full disk that gets space again.
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "storage/rocksdb/rocksdb_engine.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr Space kMeta = Space::kMeta;

// An engine with a control file for its faults, which notes what the engine reports.
class FaultyEngine {
 public:
  FaultyEngine() : engine_("rocksdb", options()) {}

  TestEngine& operator*() { return engine_; }
  TestEngine* operator->() { return &engine_; }

  void set_faults(const std::string& words) {
    std::ofstream(control_) << words << std::flush;
    std::this_thread::sleep_for(30ms);  // the file is looked at every 10 ms
  }

  // Opens on a healthy disk, without the faults.
  void reopen() {
    set_faults("");
    engine_.reopen();
  }

  std::vector<Status::Code> reported() {
    std::lock_guard lock(mutex_);
    return reported_;
  }

 private:
  EngineOptions options() {
    EngineOptions options = TestEngine::small_options();
    options.fault_file = control_;
    options.on_background_error = [this](const Status& status) {
      std::lock_guard lock(mutex_);
      reported_.push_back(status.code());
    };
    return options;
  }

  TemporaryDirectory directory_;
  const std::string control_ = directory_.file("faults");
  std::mutex mutex_;
  std::vector<Status::Code> reported_;  // guarded by mutex_
  TestEngine engine_;
};

// Fails one call to the disk, once. Any thread.
class OneFault {
 public:
  // The Nth from now on; 0: none.
  void fail_call(int number, rocksdb::IOStatus with) {
    std::lock_guard lock(mutex_);
    left_ = number;
    status_ = std::move(with);
  }
  bool pending() {
    std::lock_guard lock(mutex_);
    return left_ > 0;
  }
  rocksdb::IOStatus next() {
    std::lock_guard lock(mutex_);
    return left_ > 0 && --left_ == 0 ? status_ : rocksdb::IOStatus::OK();
  }

 private:
  std::mutex mutex_;
  int left_ = 0;              // guarded by mutex_
  rocksdb::IOStatus status_;  // guarded by mutex_
};

class OneFaultFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  OneFaultFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, OneFault* fault)
      : FSWritableFileOwnerWrapper(std::move(file)), fault_(fault) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next();
    return status.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : status;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& /*verification*/,
                           rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next();
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug) : status;
  }
  rocksdb::IOStatus Allocate(uint64_t offset, uint64_t bytes, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next();
    return status.ok() ? FSWritableFileOwnerWrapper::Allocate(offset, bytes, options, debug)
                       : status;
  }

 private:
  OneFault* const fault_;
};

class OneFaultFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit OneFaultFileSystem(OneFault* fault)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), fault_(fault) {}
  const char* Name() const override { return "ingot.one_fault"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next();
    if (status.ok()) status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok()) *result = std::make_unique<OneFaultFile>(std::move(*result), fault_);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next();
    return status.ok() ? target()->RenameFile(from, to, options, debug) : status;
  }

 private:
  OneFault* const fault_;
};

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

// Until writing works again, at most 20 seconds: RocksDB looks for space every five.
Status heal(Engine* engine) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  Status status = engine->try_resume();
  while (status.code() == Status::Code::kNoSpace && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(20ms);
    status = engine->try_resume();
  }
  return status;
}

std::ptrdiff_t logs_of(const std::string& path) {
  const auto entries = std::filesystem::directory_iterator(path);
  return std::ranges::count_if(
      entries, [](const auto& entry) { return entry.path().extension() == ".log"; });
}

// Until RocksDB has put a memtable aside, to be flushed, and begun another log; how many records
// that took.
size_t fill_memtable(FaultyEngine& engine) {
  size_t records = 0;
  const std::string& path = engine->options().path;
  for (const auto before = logs_of(path); logs_of(path) == before; ++records) {
    REQUIRE(engine->put(kMeta, "k" + std::to_string(records), noise(4000, records)).ok());
  }
  return records;
}

// How the first write is refused; how many were not.
std::pair<Status, size_t> write_until_refused(FaultyEngine& engine) {
  size_t written = 0;
  Status status;
  while (status.ok() && written < 10000) {
    status = engine->put(kMeta, "k" + std::to_string(written), noise(4000, written));
    if (status.ok()) ++written;
  }
  return {status, written};
}

// As fill_memtable, with an append that fails behind it.
size_t fill_memtable_and_disk(FaultyEngine& engine) {
  const size_t records = fill_memtable(engine);
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  return records;
}

}  // namespace

TEST_CASE("RocksDB: after a failed fsync nothing is written until it is opened again") {
  FaultyEngine engine;
  REQUIRE(engine->put(kMeta, "before", "v", Durability::kSynced).ok());
  engine.set_faults("fail-sync");

  SECTION("of a synced write: the write is not visible") {
    const Status failed = engine->put(kMeta, "during", "v", Durability::kSynced);
    CHECK(failed.code() == Status::Code::kIo);
    CHECK(engine->get(kMeta, "during") == "<absent>");
    CHECK(engine->peek(kMeta, "during") == "<absent>");
  }
  SECTION("of sync(): what was visible stays visible") {
    REQUIRE(engine->put(kMeta, "buffered", "v").ok());
    CHECK((*engine)->sync().code() == Status::Code::kIo);
    CHECK(engine->get(kMeta, "buffered") == "v");
  }
  SECTION("of a flush") {
    CHECK((*engine)->flush().code() == Status::Code::kIo);
  }
  CHECK(engine.reported() == std::vector{Status::Code::kIo});

  CHECK(engine->put(kMeta, "after", "v").code() == Status::Code::kIo);
  engine.set_faults("");  // a disk that works again proves nothing about what it dropped
  CHECK(engine->put(kMeta, "after", "v").code() == Status::Code::kIo);
  CHECK(engine->put(kMeta, "after", "v", Durability::kSynced).code() == Status::Code::kIo);
  CHECK((*engine)->try_resume().code() == Status::Code::kIo);
  CHECK(engine->put(kMeta, "after", "v").code() == Status::Code::kIo);
  CHECK(engine->get(kMeta, "before") == "v");
  CHECK(engine->get(kMeta, "after") == "<absent>");

  engine.reopen();
  CHECK(engine->get(kMeta, "before") == "v");
  CHECK(engine->get(kMeta, "after") == "<absent>");
  CHECK(engine->put(kMeta, "after", "v", Durability::kSynced).ok());
}

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
  const Status healed = heal(&**engine);
  INFO(healed.message());
  REQUIRE(healed.ok());
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
  REQUIRE(heal(&**engine).ok());
  CHECK(engine->put(kMeta, "more", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == 501);
}

TEST_CASE("RocksDB: a log that an append failed on is synced without an abort") {
  FaultyEngine engine;
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  engine.set_faults("no-append");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
  CHECK((*engine)->sync().ok());
  CHECK((*engine)->health() == Health::kNoSpace);
  engine.set_faults("");
  REQUIRE(heal(&**engine).ok());
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records{{"after", "v"}, {"before", "v"}});
}

TEST_CASE("RocksDB: a disk that fills up while a flush is scheduled heals") {
  FaultyEngine engine;
  std::optional<BusyFlushThreads> busy(std::in_place);
  const size_t filled = fill_memtable_and_disk(engine);
  busy.reset();  // it begins while RocksDB is stopped
  std::this_thread::sleep_for(50ms);
  engine.set_faults("");
  REQUIRE(heal(&**engine).ok());
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

TEST_CASE("RocksDB: a disk that takes no new file refuses writes and heals") {
  FaultyEngine engine;
  engine.set_faults("no-create");
  const auto [refused, records] = write_until_refused(engine);
  CHECK(refused.code() == Status::Code::kNoSpace);
  engine.set_faults("");
  REQUIRE(heal(&**engine).ok());
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == records + 1);
}

TEST_CASE("RocksDB: the first refusal says so when only a restart helps") {
  FaultyEngine engine;
  engine.set_faults("no-rename");
  const auto [refused, records] = write_until_refused(engine);
  CHECK(refused.code() == Status::Code::kIo);
  CHECK((*engine)->health() == Health::kUndecided);
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == records);
}

TEST_CASE("RocksDB: a file system that turns read-only ends writing, not reading") {
  FaultyEngine engine;
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  REQUIRE((*engine)->flush().ok());
  REQUIRE(engine->put(kMeta, "later", "v").ok());
  engine.set_faults("read-only");
  CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kIo);
  CHECK_FALSE((*engine)->flush().ok());
  CHECK((*engine)->sync().code() == Status::Code::kIo);
  CHECK((*engine)->health() == Health::kUndecided);
  CHECK(engine->get(kMeta, "before") == "v");
  CHECK(engine->get(kMeta, "later") == "v");
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records{{"before", "v"}, {"later", "v"}});
}

TEST_CASE("RocksDB: whichever call to the disk fails, nothing acknowledged is lost") {
  const bool full = GENERATE(true, false);
  rocksdb::IOStatus failure = full ? rocksdb::IOStatus::NoSpace("No space left on device")
                                   : rocksdb::IOStatus::IOError("Input/output error");
  failure.SetRetryable(full);
  bool failed = true;
  int number = 0;
  while (failed) {
    INFO("call " << ++number << ", " << failure.ToString());
    TemporaryDirectory directory;
    EngineOptions options = TestEngine::small_options();
    options.path = directory.file("db");
    OneFault fault;
    auto [engine, opened] = RocksdbEngine::open(
        options, rocksdb::NewCompositeEnv(std::make_shared<OneFaultFileSystem>(&fault)));
    REQUIRE(opened.ok());
    std::vector<std::string> acknowledged;
    const auto put = [&, &db = *engine](const std::string& key, Durability durability) {
      const auto batch = db.new_batch();
      batch->put(kMeta, key, noise(3000, 5));
      if (db.write(*batch, durability).ok()) acknowledged.push_back(key);
    };
    const auto check = [&](Engine& db) {
      std::string value;
      for (const std::string& key : acknowledged) {
        CHECK(db.get(nullptr, kMeta, key, Tier::kDisk, &value, nullptr) == Lookup::kFound);
      }
    };
    fault.fail_call(number, failure);
    for (int i = 0; i < 2; ++i) put("a" + std::to_string(i), Durability::kBuffered);
    (void)engine->sync();
    (void)engine->flush();
    for (int i = 0; i < 2; ++i) put("b" + std::to_string(i), Durability::kSynced);
    failed = !fault.pending();
    fault.fail_call(0, failure);
    CHECK((failed || acknowledged.size() == 4));
    if (engine->health() == Health::kNoSpace && heal(engine.get()).ok()) {
      put("healed", Durability::kSynced);
      CHECK(acknowledged.back() == "healed");
    }
    check(*engine);
    engine.reset();
    const auto again = must_open("rocksdb", options);
    check(*again);
    CHECK(again->health() == Health::kHealthy);
  }
  CHECK(number > 10);
}

}  // namespace ingot::storage
