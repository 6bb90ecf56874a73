// SAVE and BGSAVE: the checkpoint is whole, replaces the last one, and a failure leaves that alone.
#include "src/server/saver.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/server/checkpoints.h"
#include "storage/engine.h"
#include "tests/src/failing_engine.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::server {
namespace {

using storage::Space;
namespace fs = std::filesystem;

class Saved {
 public:
  explicit Saved(const std::string& engine_name)
      : engine_(storage::open_engine(engine_name,
                                     {.path = directory_.file("data"), .cache_bytes = 16 << 20})
                    .first),
        stats_(0),
        saver_(*engine_, stats_, 77) {}

  std::string path() const { return directory_.file("dump.rdb.checkpoint"); }
  CheckpointPlan plan(uint64_t keep = 1) const { return {.path = path(), .keep = keep}; }
  metrics::Stats& stats() { return stats_; }
  Saver& saver() { return saver_; }
  void put(const std::string& value) {
    auto batch = engine_->new_batch();
    batch->put(Space::kMeta, "key", value);
    REQUIRE(engine_->write(*batch, storage::Durability::kBuffered).ok());
  }
  // What a server that was started on a copy of the checkpoint would find.
  std::string saved(const std::string& suffix = "") {
    const std::string copy = directory_.file("copy");
    fs::remove_all(copy);
    if (!fs::exists(path() + suffix)) return "no checkpoint";
    fs::copy(path() + suffix, copy, fs::copy_options::recursive);
    const storage::EngineOptions options{.path = copy, .cache_bytes = 16 << 20};
    CHECK(storage::open_engine("leveldb", options).second.code() ==
          storage::Status::Code::kInvalid);
    auto [engine, status] = storage::open_engine("rocksdb", options);
    REQUIRE(status.ok());
    std::string value = "nothing";
    engine->get(nullptr, Space::kMeta, "key", storage::Tier::kDisk, &value, nullptr);
    return value;
  }
  void wait() {
    while (saver_.saving()) std::this_thread::yield();
  }

 private:
  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::Engine> engine_;
  metrics::Stats stats_;
  Saver saver_;
};

#ifndef __SANITIZE_THREAD__  // RocksDB and LevelDB are not built for the thread sanitizer

TEST_CASE("each save replaces the last one") {
  Saved data("rocksdb");
  Saver& saver = data.saver();
  CHECK(saver.last_save_s() == 77);
  CHECK(saver.last_duration_s() == -1);
  data.put("one");
  metrics::add(data.stats().changes_since_save, 3);
  REQUIRE(saver.save(data.plan()).ok());
  CHECK(data.saved() == "one");
  CHECK(data.stats().changes_since_save == 0);
  CHECK(data.stats().saves == 1);
  CHECK(saver.last_save_s() > 77);
  CHECK(saver.last_duration_s() == -1);  // of BGSAVE

  data.put("two");
  REQUIRE(saver.save_in_background(data.plan()).ok());
  data.wait();
  CHECK(saver.last_save_ok());
  CHECK(data.saved() == "two");
  CHECK(saver.last_duration_s() >= 0);
  CHECK_FALSE(fs::exists(data.path() + ".new"));
  CHECK_FALSE(fs::exists(data.path() + ".1"));
}

TEST_CASE("as many checkpoints stay as are to be kept") {
  Saved data("rocksdb");
  const auto save = [&](const std::string& value, uint64_t keep) {
    data.put(value);
    REQUIRE(data.saver().save(data.plan(keep)).ok());
  };
  for (const char* value : {"one", "two", "three", "four"}) save(value, 3);
  CHECK(data.saved() == "four");
  CHECK(data.saved(".1") == "three");
  CHECK(data.saved(".2") == "two");
  CHECK(data.saved(".3") == "no checkpoint");

  fs::remove_all(data.path() + ".1");  // by hand: the gap closes
  fs::create_directory(data.path() + ".1x");
  save("five", 3);
  CHECK(data.saved(".1") == "four");
  CHECK(data.saved(".2") == "two");

  fs::rename(data.path() + ".2", data.path() + ".7");  // one that nobody would come to
  save("six", 1);
  CHECK(data.saved() == "six");
  CHECK(data.saved(".1") == "no checkpoint");
  CHECK(data.saved(".7") == "no checkpoint");
  CHECK(fs::exists(data.path() + ".1x"));  // not ours
}

TEST_CASE("a save that fails at the end leaves all checkpoints") {
  Saved data("rocksdb");
  data.put("one");
  REQUIRE(data.saver().save(data.plan(2)).ok());
  data.put("two");
  REQUIRE(data.saver().save(data.plan(2)).ok());
  data.put("three");
  fs::create_symlink("nowhere", data.path() + ".2");  // where a directory cannot be put
  CHECK_FALSE(data.saver().save(data.plan(2)).ok());
  CHECK(data.saved() == "two");
  CHECK(data.saved(".1") == "one");
  CHECK_FALSE(fs::exists(data.path() + ".new"));
}

TEST_CASE("what stands where a checkpoint is made is removed, and nothing behind a link") {
  Saved data("rocksdb");
  data.put("one");
  const std::string tmp = data.path() + ".new.tmp";
  SECTION("a file") {
    std::ofstream(tmp) << "x";
  }
  SECTION("a directory") {
    fs::create_directories(tmp + "/in/it");
  }
  SECTION("a link") {
    storage::TemporaryDirectory others;
    std::ofstream(others.file("file")) << "x";
    fs::create_directory_symlink(fs::path(others.file("file")).parent_path(), tmp);
    REQUIRE(data.saver().save(data.plan()).ok());
    CHECK(fs::exists(others.file("file")));
  }
  REQUIRE(data.saver().save(data.plan()).ok());
  CHECK(data.saved() == "one");
}

TEST_CASE("a checkpoint is removed under another name") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("checkpoint");
  for (const std::string suffix : {"", ".new"}) fs::create_directory(path + suffix);
  std::ofstream(path + "/file") << "x";
  const int watch = inotify_init1(IN_NONBLOCK);
  REQUIRE(inotify_add_watch(watch, fs::path(path).parent_path().c_str(), IN_MOVED_TO) >= 0);
  REQUIRE(inotify_add_watch(watch, path.c_str(), IN_DELETE) >= 0);
  REQUIRE(put_checkpoint({.path = path, .keep = 1}, path + ".new").ok());

  alignas(inotify_event) char events[4096];
  const ssize_t got = read(watch, events, sizeof(events));
  close(watch);
  std::vector<std::string> names;
  for (ssize_t at = 0; at < got;) {
    const auto* event = reinterpret_cast<const inotify_event*>(events + at);
    if (event->len > 0) names.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  CHECK(names == std::vector<std::string>{"checkpoint.1", "checkpoint", "checkpoint.new", "file"});
  CHECK(fs::exists(path));
  CHECK_FALSE(fs::exists(path + ".1"));
  CHECK_FALSE(fs::exists(path + ".new"));
}

TEST_CASE("what only checkpoints have is counted once") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("checkpoint");
  CHECK(measure_checkpoints(path).count == 0);
  const auto write = [](const std::string& file) {
    std::ofstream(file) << std::string(100'000, 'x');
  };
  for (const std::string suffix : {"", ".1", ".new"}) fs::create_directory(path + suffix);
  write(directory.file("live"));
  fs::create_hard_link(directory.file("live"), path + "/live");
  CHECK(measure_checkpoints(path).count == 2);
  CHECK(measure_checkpoints(path).bytes == 0);
  write(path + "/dead");
  const uint64_t alone = measure_checkpoints(path).bytes;
  CHECK(alone >= 100'000);
  fs::create_hard_link(path + "/dead", path + ".1/dead");
  CHECK(measure_checkpoints(path).bytes == alone);
  fs::remove(directory.file("live"));
  CHECK(measure_checkpoints(path).bytes == 2 * alone);
}

#endif

// A save that goes on until it is told to fail.
class SlowEngine : public storage::FailingEngine {
 public:
  SlowEngine() : FailingEngine(storage::open_memory({}).first) {}
  storage::Capabilities capabilities() const override { return {.checkpoint = true}; }
  storage::Status checkpoint(const std::string&) override {
    while (!go_on) std::this_thread::yield();
    return {storage::Status::Code::kNoSpace, "no space"};
  }
  std::atomic<bool> go_on{false};
};

TEST_CASE("there is one save at a time, and a failed one changes nothing") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("checkpoint");
  fs::create_directory(path);
  SlowEngine engine;
  metrics::Stats stats(0);
  metrics::add(stats.changes_since_save, 3);
  Saver saver(engine, stats, 77);
  const CheckpointPlan plan{.path = path};
  REQUIRE(saver.save_in_background(plan).ok());
  CHECK(saver.saving());
  CHECK(saver.save_in_background(plan).code() == storage::Status::Code::kBusy);
  CHECK(saver.save(plan).code() == storage::Status::Code::kBusy);
  CHECK(saver.last_save_ok());
  engine.go_on = true;
  while (saver.saving()) std::this_thread::yield();
  CHECK_FALSE(saver.last_save_ok());
  CHECK(saver.last_save_s() == 77);
  CHECK(stats.changes_since_save == 3);
  CHECK(stats.saves == 0);
  CHECK(fs::exists(path));
  CHECK(saver.save(plan).code() == storage::Status::Code::kNoSpace);
}

TEST_CASE("an engine without checkpoints is made durable instead") {
#ifdef __SANITIZE_THREAD__
  Saved data("memory");
#else
  Saved data(GENERATE(std::string("leveldb"), std::string("memory")));
#endif
  data.put("one");
  CHECK(data.saver().save(data.plan()).ok());
  CHECK(data.saver().last_save_ok());
  CHECK_FALSE(fs::exists(data.path()));
}

}  // namespace
}  // namespace ingot::server
