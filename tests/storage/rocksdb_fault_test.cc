// RocksDB on a disk that fails: a failing fsync, and a full disk that gets space again.
#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "storage/log_ledger.h"
#include "storage/rocksdb/rocksdb_engine.h"
#include "tests/storage/faulty_engine.h"
#include "tests/storage/full_file.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr Space kMeta = Space::kMeta;

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
  // Of the call that failed.
  std::string path() {
    std::lock_guard lock(mutex_);
    return path_;
  }
  rocksdb::IOStatus next(const std::string& path) {
    std::lock_guard lock(mutex_);
    if (left_ == 0 || --left_ > 0) return rocksdb::IOStatus::OK();
    path_ = path;
    rocksdb::IOStatus failed = status_.IsNoSpace() ? rocksdb::IOStatus::NoSpace("injected", path)
                                                   : rocksdb::IOStatus::IOError("injected", path);
    failed.SetRetryable(status_.GetRetryable());
    return failed;
  }

 private:
  std::mutex mutex_;
  std::string path_;          // guarded by mutex_
  int left_ = 0;              // guarded by mutex_
  rocksdb::IOStatus status_;  // guarded by mutex_
};

class OneFaultFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  OneFaultFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, std::string path, OneFault* fault)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), fault_(fault) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next(path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : status;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& /*verification*/,
                           rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next(path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug) : status;
  }
  rocksdb::IOStatus Allocate(uint64_t offset, uint64_t bytes, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next(path_);
    return status.ok() ? FSWritableFileOwnerWrapper::Allocate(offset, bytes, options, debug)
                       : status;
  }

 private:
  const std::string path_;
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
    rocksdb::IOStatus status = fault_->next(path);
    if (status.ok()) status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok()) *result = std::make_unique<OneFaultFile>(std::move(*result), path, fault_);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = fault_->next(to);
    return status.ok() ? target()->RenameFile(from, to, options, debug) : status;
  }

 private:
  OneFault* const fault_;
};

rocksdb::IOStatus failure_of(bool full) {
  rocksdb::IOStatus failure = full ? rocksdb::IOStatus::NoSpace("No space left on device")
                                   : rocksdb::IOStatus::IOError("Input/output error");
  failure.SetRetryable(full);
  return failure;
}

// An engine on such a disk.
struct OneFaultEngine {
  OneFaultEngine() {
    options.path = directory.file("db");
    auto [opened, status] = RocksdbEngine::open(
        options, rocksdb::NewCompositeEnv(std::make_shared<OneFaultFileSystem>(&fault)));
    REQUIRE(status.ok());
    engine = std::move(opened);
  }

  TemporaryDirectory directory;
  EngineOptions options = TestEngine::small_options();
  OneFault fault;
  std::unique_ptr<Engine> engine;
};

// Logs take their name and their first bytes only at the third attempt.
class ShyLogFileSystem : public rocksdb::FileSystemWrapper {
 public:
  ShyLogFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "ingot.shy_log"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok() && path.ends_with("NEXT_LOG")) {
      *result = std::make_unique<File>(std::move(*result));
    }
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (to.ends_with(".log") && ++renames_ % 3 != 0) return rocksdb::IOStatus::NoSpace("full");
    return target()->RenameFile(from, to, options, debug);
  }

 private:
  std::atomic<int> renames_ = 0;

  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    using FSWritableFileOwnerWrapper::Append;
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (++attempts_ < 3) return rocksdb::IOStatus::NoSpace("No space left on device");
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }

   private:
    int attempts_ = 0;
  };
};

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

int64_t tables_in(const std::string& directory) {
  return std::ranges::count_if(std::filesystem::directory_iterator(directory),
                               [](const auto& file) { return file.path().extension() == ".sst"; });
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

TEST_CASE("RocksDB: settings that a full disk does not take cost neither recovery nor space") {
  FaultyEngine engine;
  REQUIRE(engine->put(kMeta, "before", "v").ok());
  for (int times = 0; times < 3; ++times) {
    engine.set_faults("no-append");
    for (int i = 0; i < 2; ++i) (*engine)->set_cache_bytes(48 << 20);
    CHECK(engine->put(kMeta, "during", "v").code() == Status::Code::kNoSpace);
    engine.set_faults("");
    REQUIRE(heal(&**engine).ok());
    REQUIRE(engine->put(kMeta, "before", "v").ok());
  }
  (*engine)->set_cache_bytes(32 << 20);

  // Files that are not needed any more go.
  for (const char* key : {"one", "two"}) {
    REQUIRE(engine->put(kMeta, key, "v").ok());
    REQUIRE((*engine)->flush().ok());
  }
  REQUIRE((*engine)->compact(kMeta, {}).ok());
  for (int i = 0; i < 500 && tables_in(engine->options().path) > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(tables_in(engine->options().path) == 1);
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records{{"before", "v"}, {"one", "v"}, {"two", "v"}});
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

TEST_CASE("RocksDB: what was answered before it failed for good can still be synced") {
  FaultyEngine engine;
  engine.set_faults("no-rename");
  (void)write_until_refused(engine);
  REQUIRE((*engine)->health() == Health::kUndecided);
  engine.set_faults("");
  CHECK((*engine)->sync().code() == Status::Code::kIo);  // it takes no more for all that
  const std::string directory = engine->options().path;
  SyncedMark mark;
  REQUIRE(read_synced_mark(directory, &mark));
  CHECK(mark.bytes > 0);
  CHECK(mark.bytes == std::filesystem::file_size(directory + fmt::format("/{:06}.log", mark.log)));
}

TEST_CASE("RocksDB: a log that cannot be marked for want of space is no error of RocksDB") {
  FaultyEngine engine;
  std::optional<FullFile> full(std::in_place, engine->options().path + "/SYNCED");
  const auto [refused, records] = write_until_refused(engine);
  CHECK(refused.code() == Status::Code::kNoSpace);
  CHECK(records > 100);
  CHECK((*engine)->try_resume().code() == Status::Code::kNoSpace);
  full.reset();
  CHECK((*engine)->try_resume().ok());  // at once
  REQUIRE(engine->put(kMeta, "after", "v").ok());
  engine.reopen();
  CHECK(engine->scan(kMeta).size() == records + 1);
}

TEST_CASE(
    "RocksDB: a log that finds no room for its name or first bytes, for a moment, takes them") {
  TemporaryDirectory directory;
  EngineOptions options = TestEngine::small_options();
  options.path = directory.file("db");
  auto [engine, opened] =
      RocksdbEngine::open(options, rocksdb::NewCompositeEnv(std::make_shared<ShyLogFileSystem>()));
  REQUIRE(opened.ok());
  for (size_t i = 0; i < 4000; ++i) {
    const auto batch = engine->new_batch();
    batch->put(kMeta, std::to_string(i), noise(4000, i));
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  }
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
  CHECK((*engine)->flush().message().contains("before a restart"));
  CHECK(engine->get(kMeta, "before") == "v");
  CHECK(engine->get(kMeta, "later") == "v");
  engine.reopen();
  CHECK(engine->scan(kMeta) == Records{{"before", "v"}, {"later", "v"}});
}

TEST_CASE("RocksDB: who gives way to a slow disk leaves room for others in memory") {
  FaultyEngine engine;
  engine.set_faults("slow-sync");
  // Several times what memtables may take.
  for (size_t i = 0; i < 96; ++i) {
    (*engine)->give_way();
    REQUIRE(engine->put(kMeta, fmt::format("{:04}", i), noise(64 << 10, i)).ok());
  }
  CHECK((*engine)->stats().stall_micros < 10'000);
}

TEST_CASE("RocksDB: whichever call to the disk fails, nothing acknowledged is lost") {
  const bool full = GENERATE(true, false);
  const rocksdb::IOStatus failure = failure_of(full);
  bool failed = true;
  int number = 0;
  while (failed) {
    INFO("call " << ++number << ", " << failure.ToString());
    OneFaultEngine disk;
    auto& [directory, options, fault, engine] = disk;
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

// 360 KB in one file: three collections of as many elements.
constexpr int kElements = 40;
void fill_three_collections(Engine& engine) {
  for (uint64_t id = 1; id <= 3; ++id) {
    const auto batch = engine.new_batch();
    for (int i = 0; i < kElements; ++i) {
      batch->put(Space::kData, element_key(id, std::to_string(i)), noise(3000, id));
    }
    REQUIRE(engine.write(*batch, Durability::kBuffered).ok());
  }
  REQUIRE(engine.flush().ok());
  REQUIRE(engine.compact(Space::kData, {}).ok());
}

TEST_CASE("RocksDB: whichever call to the disk fails while space is reclaimed, the rest is left") {
  const bool full = GENERATE(true, false);
  const bool deletes_file = GENERATE(true, false);
  const std::vector<uint64_t> dead =
      deletes_file ? std::vector<uint64_t>{1, 2, 3} : std::vector<uint64_t>{2, 3};
  const rocksdb::IOStatus failure = failure_of(full);
  bool failed = true;
  int number = 0;
  while (failed) {
    INFO("call " << ++number << ", " << failure.ToString());
    OneFaultEngine disk;
    auto& [directory, options, fault, engine] = disk;
    fill_three_collections(*engine);
    REQUIRE(engine->add_dead(GarbageKind::kCollection, dead) == dead.size());
    fault.fail_call(number, failure);
    Reclaimed done;
    (void)engine->reclaim(GarbageKind::kCollection, &done);
    failed = !fault.pending();
    fault.fail_call(0, failure);
    const auto check = [&](Engine& db) {
      std::string value;
      for (int i = 0; i < kElements && !deletes_file; ++i) {
        const std::string key = element_key(1, std::to_string(i));
        CHECK(db.get(nullptr, Space::kData, key, Tier::kDisk, &value, nullptr) == Lookup::kFound);
      }
    };
    check(*engine);
    // What there is of it gives its space back.
    if (fault.path().ends_with(".sst")) CHECK(tables_in(options.path) == 1);
    if (engine->health() == Health::kNoSpace) REQUIRE(heal(engine.get()).ok());
    engine->set_cache_bytes(24 << 20);
    const auto batch = engine->new_batch();
    batch->put(kMeta, "later", "v");
    if (full) CHECK(engine->write(*batch, Durability::kSynced).ok());
    if (full) CHECK(engine->flush().ok());
    engine.reset();
    const auto again = must_open("rocksdb", options);
    check(*again);
  }
  CHECK(number > (deletes_file ? 2 : 5));
}

}  // namespace ingot::storage
