// LevelDB on a disk that fails: it must not append to a torn log, and a full disk heals.
#include <leveldb/env.h>
#include <catch2/catch.hpp>

#include <atomic>

#include "storage/leveldb/leveldb_engine.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kMeta = Space::kMeta;

// The faults of all files of one Env, and what it counted. Any thread.
struct Faults {
  std::atomic<bool> no_space = false;
  std::atomic<bool> fail_sync = false;
  std::atomic<int> syncs = 0;
};

class FaultyFile : public leveldb::WritableFile {
 public:
  FaultyFile(leveldb::WritableFile* file, Faults* faults) : file_(file), faults_(faults) {}

  leveldb::Status Append(const leveldb::Slice& data) override {
    if (!faults_->no_space) return file_->Append(data);
    const leveldb::Status half = file_->Append(leveldb::Slice(data.data(), data.size() / 2));
    return half.ok() ? leveldb::Status::IOError("injected", "No space left on device") : half;
  }
  leveldb::Status Close() override { return file_->Close(); }
  leveldb::Status Flush() override { return file_->Flush(); }
  leveldb::Status Sync() override {
    if (faults_->fail_sync) return leveldb::Status::IOError("injected", "Input/output error");
    ++faults_->syncs;
    return file_->Sync();
  }

 private:
  const std::unique_ptr<leveldb::WritableFile> file_;
  Faults* const faults_;
};

class FaultyEnv : public leveldb::EnvWrapper {
 public:
  explicit FaultyEnv(Faults* faults) : EnvWrapper(leveldb::Env::Default()), faults_(faults) {}

  leveldb::Status NewWritableFile(const std::string& path,
                                  leveldb::WritableFile** result) override {
    return wrap(target()->NewWritableFile(path, result), result);
  }
  leveldb::Status NewAppendableFile(const std::string& path,
                                    leveldb::WritableFile** result) override {
    return wrap(target()->NewAppendableFile(path, result), result);
  }

 private:
  leveldb::Status wrap(const leveldb::Status& status, leveldb::WritableFile** file) {
    if (status.ok()) *file = new FaultyFile(*file, faults_);  // LevelDB's interface is raw
    return status;
  }

  Faults* const faults_;
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
  Faults& faults() { return faults_; }
  const std::vector<Status::Code>& reported() const { return reported_; }

  void reopen() {
    engine_.reset();
    auto [engine, status] = open_leveldb_on(options_, &env_);
    INFO(status.message());
    REQUIRE(status.ok());
    engine_ = std::move(engine);
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
  Faults faults_;
  FaultyEnv env_{&faults_};
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
  engine.faults().no_space = true;
  CHECK(engine.put("during").code() == Status::Code::kNoSpace);
  engine.faults().no_space = false;
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

}  // namespace ingot::storage
