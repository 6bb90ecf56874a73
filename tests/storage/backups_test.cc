// Backups of checkpoints: what is restored is what was there, files are stored once, and what goes
// wrong with one backup harms no other.
#include "storage/backups.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "storage/engine.h"
#include "tests/storage/temporary_directory.h"

#ifndef __SANITIZE_THREAD__  // RocksDB is not built for the thread sanitizer

namespace ingot::storage {
namespace {

namespace fs = std::filesystem;
using Access = Backups::Access;

class BackedUp {
 public:
  explicit BackedUp(const std::string& engine = "rocksdb")
      : engine_(
            open_engine(engine, {.path = directory_.file("data"), .cache_bytes = 16 << 20}).first) {
  }

  std::string file(const std::string& name) const { return directory_.file(name); }
  std::string backups() const { return file("backups"); }
  // Values that no compression makes small.
  void put(const std::string& key, char fill, size_t count) {
    auto batch = engine_->new_batch();
    for (size_t i = 0; i < count; ++i) {
      batch->put(Space::kMeta, key + std::to_string(i), std::string(1, fill) + noise());
    }
    REQUIRE(engine_->write(*batch, Durability::kBuffered).ok());
  }
  std::string checkpoint() {
    const std::string path = file("checkpoint");
    fs::remove_all(path);
    REQUIRE(engine_->checkpoint(path).ok());
    REQUIRE(claim_directory(engine_->name(), path).ok());
    return path;
  }
  uint32_t create() {
    auto [backups, status] = Backups::open(this->backups(), Access::kChange);
    REQUIRE(status.ok());
    Backups::Backup made;
    status = backups->create(checkpoint(), &made);
    INFO(status.message());
    REQUIRE(status.ok());
    return made.id;
  }
  std::unique_ptr<Backups> open(Access access) {
    auto [backups, status] = Backups::open(this->backups(), access);
    REQUIRE(status.ok());
    return std::move(backups);
  }
  // The first byte of what a server would find, as put() filled it.
  std::string restored(uint32_t id, const std::string& key) {
    const std::string target = file("restored");
    fs::remove_all(target);
    const Status status = open(Access::kRead)->restore(id, target);
    INFO(status.message());
    REQUIRE(status.ok());
    const auto [engine, opened] = open_engine("rocksdb", {.path = target, .cache_bytes = 16 << 20});
    REQUIRE(opened.ok());
    std::string value;
    const Lookup found = engine->get(nullptr, Space::kMeta, key, Tier::kDisk, &value, nullptr);
    return found == Lookup::kFound ? value.substr(0, 1) : "nothing";
  }
  uint64_t bytes_of_backups() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(backups())) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }
  // A table of the backups.
  fs::path some_table() const {
    for (const auto& entry : fs::recursive_directory_iterator(backups())) {
      if (entry.path().extension() == ".sst") return entry.path();
    }
    return {};
  }

 private:
  std::string noise() {
    std::string bytes(1000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  TemporaryDirectory directory_;
  std::mt19937 random_{7};
  std::unique_ptr<Engine> engine_;
};

TEST_CASE("each backup is of its time, and stores only what is new", "[backups]") {
  BackedUp data;
  data.put("a", '1', 2000);
  CHECK(data.create() == 1);
  const uint64_t alone = data.bytes_of_backups();
  CHECK(alone > 2'000'000);
  data.put("b", '2', 10);
  data.put("a", '3', 1);
  CHECK(data.create() == 2);
  CHECK(data.bytes_of_backups() < alone + alone / 5);

  const auto backups = data.open(Access::kRead);
  REQUIRE(backups->list().size() == 2);
  CHECK(backups->list()[1].bytes > 2'000'000);
  CHECK(backups->list()[0].made_s > 1'700'000'000);
  CHECK(backups->damaged().empty());
  CHECK(backups->verify(1).ok());
  CHECK(backups->verify(2).ok());
  CHECK_FALSE(backups->verify(3).ok());
  CHECK(data.restored(1, "a0") == "1");
  CHECK(data.restored(1, "b5") == "nothing");
  CHECK(data.restored(2, "a0") == "3");
  CHECK(data.restored(2, "b5") == "2");
  CHECK_FALSE(backups->restore(1, data.file("restored")).ok());  // is there
  CHECK_FALSE(backups->restore(7, data.file("other")).ok());
}

TEST_CASE("purging keeps the last ones whole", "[backups]") {
  BackedUp data;
  for (char fill = '1'; fill <= '4'; ++fill) {
    data.put("a", fill, 100);
    data.create();
  }
  REQUIRE(data.open(Access::kChange)->purge(2).ok());
  const auto backups = data.open(Access::kRead);
  REQUIRE(backups->list().size() == 2);
  CHECK(backups->list()[0].id == 3);
  CHECK(backups->verify(3).ok());
  CHECK(data.restored(4, "a99") == "4");
}

TEST_CASE("one changes, or some read", "[backups]") {
  BackedUp data;
  CHECK(Backups::open(data.backups(), Access::kRead).second.code() == Status::Code::kInvalid);
  fs::create_directory(data.file("other"));
  std::ofstream(data.file("other") + "/file") << "x";
  CHECK(Backups::open(data.file("other"), Access::kChange).second.code() == Status::Code::kInvalid);
  auto one = data.open(Access::kChange);
  CHECK(Backups::open(data.backups(), Access::kChange).second.code() == Status::Code::kBusy);
  CHECK(Backups::open(data.backups(), Access::kRead).second.code() == Status::Code::kBusy);
  one.reset();
  one = data.open(Access::kRead);
  CHECK(Backups::open(data.backups(), Access::kRead).second.ok());
  CHECK(Backups::open(data.backups(), Access::kChange).second.code() == Status::Code::kBusy);
}

TEST_CASE("damage is found", "[backups]") {
  BackedUp data;
  data.put("a", '1', 100);
  data.create();
  const fs::path table = data.some_table();
  REQUIRE_FALSE(table.empty());
  SECTION("in a backup") {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put('!');
    file.close();
    CHECK(data.open(Access::kRead)->damaged().empty());
    CHECK(data.open(Access::kRead)->verify(1).code() == Status::Code::kCorruption);
    CHECK_FALSE(data.open(Access::kRead)->restore(1, data.file("other")).ok());
  }
  SECTION("of a file that is not there") {
    fs::remove(table);
    CHECK(data.open(Access::kRead)->damaged() == std::vector<uint32_t>{1});
    CHECK(data.open(Access::kRead)->list().empty());
  }
  SECTION("in what was backed up") {
    const std::string checkpoint = data.checkpoint();
    for (const auto& entry : fs::directory_iterator(checkpoint)) {
      if (entry.path().extension() != ".sst") continue;
      const std::string copy = entry.path().string() + ".copy";
      fs::copy_file(entry.path(), copy);
      fs::rename(copy, entry.path());  // the link shares its bytes with the engine
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(500);
      file.put('!');
    }
    fs::remove_all(data.backups());
    Backups::Backup made;
    REQUIRE(data.open(Access::kChange)->create(checkpoint, &made).ok());
    CHECK(data.open(Access::kRead)->verify(1).code() == Status::Code::kCorruption);
  }
}

TEST_CASE("what is no data of RocksDB is refused", "[backups]") {
  BackedUp data;
  Backups::Backup made;
  auto backups = data.open(Access::kChange);
  CHECK(backups->create(data.file("absent"), &made).code() == Status::Code::kIo);
  fs::create_directory(data.file("empty"));
  CHECK(backups->create(data.file("empty"), &made).code() == Status::Code::kInvalid);
  REQUIRE(claim_directory("leveldb", data.file("empty")).ok());
  CHECK(backups->create(data.file("empty"), &made).code() == Status::Code::kInvalid);
  CHECK(backups->list().empty());
}

}  // namespace
}  // namespace ingot::storage

#endif
