// RocksDB on a disk that fails: a failing fsync, and a full disk that gets space again.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

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

// Until writing works again, at most 20 seconds: RocksDB looks for space every five.
Status heal(Engine* engine) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  Status status = engine->try_resume();
  while (!status.ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(20ms);
    status = engine->try_resume();
  }
  return status;
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

}  // namespace ingot::storage
