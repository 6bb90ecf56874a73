// What storage/engine.h promises, on every engine: records, batches, order, life of a directory.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kMeta = Space::kMeta;

uint64_t bytes_of_tables_and_logs(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    const auto kind = file.path().extension();
    if (kind == ".log" || kind == ".sst" || kind == ".ldb") bytes += file.file_size();
  }
  return bytes;
}

// Tables are made, and files deleted, by threads of the engine.
bool tells_its_disk_bytes(TestEngine& engine) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    try {
      const uint64_t told = engine->stats().disk_bytes;
      if (told == bytes_of_tables_and_logs(engine.options().path)) return true;
    } catch (const std::filesystem::filesystem_error&) {  // deleted since it was listed
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a record is put, replaced and removed") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  CHECK(engine.get(kMeta, "k") == "<absent>");
  REQUIRE(engine.put(kMeta, "k", "one").ok());
  CHECK(engine.get(kMeta, "k") == "one");
  REQUIRE(engine.put(kMeta, "k", "two", Durability::kSynced).ok());
  CHECK(engine.get(kMeta, "k") == "two");
  REQUIRE(engine.remove(kMeta, "k").ok());
  CHECK(engine.get(kMeta, "k") == "<absent>");
  REQUIRE(engine.remove(kMeta, "never there").ok());
}

TEST_CASE("spaces do not see each other") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  for (Space space : kAllSpaces) REQUIRE(engine.put(space, "k", space_name(space)).ok());
  for (Space space : kAllSpaces) {
    CHECK(engine.get(space, "k") == space_name(space));
    CHECK(engine.scan(space) == Records{{"k", std::string(space_name(space))}});
    CHECK(engine.scan_backwards(space).size() == 1);
  }
  REQUIRE(engine.remove(Space::kData, "k").ok());
  CHECK(engine.get(Space::kData, "k") == "<absent>");
  CHECK(engine.get(Space::kMeta, "k") == "meta");
  CHECK(engine.get(Space::kOrder, "k") == "order");
}

TEST_CASE("keys and values are any bytes") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  const std::string zero(1, '\0');
  const Records records = {{"", "the empty key"},
                           {zero, all_bytes},
                           {zero + zero, "two zeros"},
                           {"\x7f", "low"},
                           {"\x80", "high"},
                           {all_bytes.substr(200), "tail"},
                           {"\xff\xff\xff\xff", "highest"}};
  for (const auto& [key, value] : records) REQUIRE(engine.put(kMeta, key, value).ok());
  for (const auto& [key, value] : records) CHECK(engine.get(kMeta, key) == value);
  CHECK(engine.scan(kMeta) == records);  // they were written in the order of memcmp
  engine.reopen();
  CHECK(engine.scan(kMeta) == records);
}

TEST_CASE("large values") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  const std::string value = noise(5 << 20, 1);
  REQUIRE(engine.put(Space::kData, "large", value).ok());
  CHECK(engine.get(Space::kData, "large") == value);
  REQUIRE(engine->flush().ok());
  engine.reopen();
  CHECK(engine.get(Space::kData, "large") == value);
}

// No caller stores one; a cache-only read could not tell it from "did not look".
TEST_CASE("an empty value is a miss for a cache-only read") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  REQUIRE(engine.put(kMeta, "k", "").ok());
  CHECK(engine.peek(kMeta, "k") == "<miss>");
  CHECK(engine.get(kMeta, "k").empty());
}

TEST_CASE("a batch is one change over all spaces, and its last word wins") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  const auto batch = engine->new_batch();
  const size_t empty_bytes = batch->bytes();
  batch->put(kMeta, "a", "1");
  batch->put(Space::kData, "a", "2");
  batch->put(kMeta, "a", "3");
  batch->put(kMeta, "b", "4");
  batch->remove(kMeta, "b");
  batch->remove(kMeta, "c");
  batch->put(kMeta, "c", "5");
  CHECK(batch->bytes() > empty_bytes);
  CHECK(engine.get(kMeta, "a") == "<absent>");
  REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  CHECK(engine.get(kMeta, "a") == "3");
  CHECK(engine.get(Space::kData, "a") == "2");
  CHECK(engine.get(kMeta, "b") == "<absent>");
  CHECK(engine.get(kMeta, "c") == "5");

  batch->clear();
  CHECK(batch->bytes() == empty_bytes);
  batch->put(kMeta, "d", "6");
  REQUIRE(engine->write(*batch, Durability::kSynced).ok());
  CHECK(engine.get(kMeta, "d") == "6");
  CHECK(engine.get(kMeta, "a") == "3");

  batch->clear();
  CHECK(engine->write(*batch, Durability::kSynced).ok());  // an empty batch is no error
}

TEST_CASE("reopening keeps what was written") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  for (int i = 0; i < 1000; ++i) {
    REQUIRE(engine.put(kMeta, "k" + std::to_string(i), std::string(100, 'x')).ok());
  }
  REQUIRE(engine.remove(kMeta, "k500").ok());
  SECTION("from the log") {}
  SECTION("from table files") {
    REQUIRE(engine->flush().ok());
  }
  SECTION("after a sync") {
    REQUIRE(engine->sync().ok());
  }
  SECTION("after a compaction") {
    REQUIRE(engine->compact(kMeta, {}).ok());
  }
  engine.reopen();
  CHECK(engine.scan(kMeta).size() == 999);
  CHECK(engine.get(kMeta, "k500") == "<absent>");
  CHECK(engine.get(kMeta, "k999") == std::string(100, 'x'));
}

TEST_CASE("a process that is killed loses no write that returned") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine.persistent()) return;
  INFO(engine.name());

  const auto batch = engine->new_batch();
  for (int i = 0; i < 300; ++i) {
    batch->clear();
    batch->put(kMeta, "k" + std::to_string(i), "v");
    batch->put(Space::kData, "k" + std::to_string(i), noise(500, static_cast<uint64_t>(i)));
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    if (i == 100) REQUIRE(engine->flush().ok());
  }
  // What the operating system has at this moment is what a killed process leaves behind.
  EngineOptions options = engine.options();
  options.path = engine.directory().file("killed");
  std::filesystem::copy(engine.options().path, options.path);
  const auto killed = must_open(engine.name(), options);
  std::string value;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "k" + std::to_string(i);
    REQUIRE(killed->get(nullptr, kMeta, key, Tier::kDisk, &value, nullptr) == Lookup::kFound);
    REQUIRE(killed->get(nullptr, Space::kData, key, Tier::kDisk, &value, nullptr) ==
            Lookup::kFound);
    REQUIRE(value == noise(500, static_cast<uint64_t>(i)));
  }
}

TEST_CASE("a directory has one owner") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine.persistent()) return;
  INFO(engine.name());

  const auto [second, status] = open_engine(engine.name(), engine.options());
  CHECK(second == nullptr);
  CHECK(status.code() == Status::Code::kBusy);
  INFO(status.message());
  CHECK(status.message().contains("in use by another process"));
  engine.reopen();  // the lock went with the first
}

// A new database in its place would remove them.
TEST_CASE("files that have lost their marker or their catalogue are left alone") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine.persistent()) return;
  INFO(engine.name());
  const std::string_view other = engine.name() == "rocksdb" ? "leveldb" : "rocksdb";
  const bool has_tables = GENERATE(false, true);
  REQUIRE(engine.put(kMeta, "k", "v").ok());
  if (has_tables) REQUIRE(engine->flush().ok());
  engine.close();
  const std::filesystem::path path = engine.options().path;
  std::filesystem::remove(path / "ENGINE");

  CHECK(engine_by_files(path) == engine.name());
  const auto [opened, status] = open_engine(other, engine.options());
  CHECK(opened == nullptr);
  CHECK(status.code() == Status::Code::kInvalid);
  CHECK_FALSE(std::filesystem::exists(path / "ENGINE"));

  std::filesystem::rename(path / "CURRENT", path / "CURRENT.away");
  for (const std::string_view name : {"rocksdb", "leveldb"}) {
    const auto [headless, why] = open_engine(name, engine.options());
    CHECK(headless == nullptr);
    CHECK(why.code() == Status::Code::kCorruption);
  }
  std::filesystem::rename(path / "CURRENT.away", path / "CURRENT");
  engine.reopen();
  CHECK(engine.get(kMeta, "k") == "v");
}

// RocksDB writes IDENTITY and a manifest before CURRENT.
TEST_CASE("a first start that was killed, or found no space, is done again") {
  const std::string name = GENERATE(from_range(engines_under_test()));
  if (name == "memory") return;
  INFO(name);
  TemporaryDirectory directory;
  EngineOptions options;
  options.path = directory.file("db");
  REQUIRE(claim_directory(name, options.path).ok());
  const std::string first_file = name == "rocksdb" ? "IDENTITY" : "MANIFEST-000001";
  std::ofstream(options.path + "/" + first_file) << "";
  CHECK(must_open(name, options) != nullptr);
}

TEST_CASE("what cannot be opened is refused in words") {
  const std::string name = GENERATE(from_range(engines_under_test()));
  if (name == "memory") return;
  INFO(name);
  TemporaryDirectory directory;
  EngineOptions options;

  SECTION("an unknown compression") {
    options.path = directory.file("db");
    options.compression = "middle-out";
    const auto [engine, status] = open_engine(name, options);
    CHECK(engine == nullptr);
    CHECK(status.code() == Status::Code::kInvalid);
    CHECK(status.message().contains("middle-out"));
  }
  SECTION("a directory that cannot be made") {
    options.path = "/proc/no/such/place";
    const auto [engine, status] = open_engine(name, options);
    CHECK(engine == nullptr);
    CHECK(status.code() == Status::Code::kIo);
    CHECK(status.message().contains("/proc/no/such/place"));
  }
  SECTION("parents are created") {
    options.path = directory.file("a/b/c");
    CHECK(must_open(name, options) != nullptr);
  }
}

TEST_CASE("every compression keeps the data") {
  EngineOptions options = TestEngine::small_options();
  options.compression = GENERATE("none", "snappy", "lz4", "zstd");
  TestEngine engine(GENERATE(from_range(engines_under_test())), options);
  INFO(engine.name() << " " << options.compression);

  const std::string text(3000, 'a');
  for (int i = 0; i < 500; ++i) REQUIRE(engine.put(kMeta, "k" + std::to_string(i), text).ok());
  REQUIRE(engine->compact(kMeta, {}).ok());
  engine.reopen();
  CHECK(engine.get(kMeta, "k77") == text);
  CHECK(engine.scan(kMeta).size() == 500);
  if (engine.persistent() && options.compression != "none") {
    CHECK(engine->stats().disk_bytes < 500'000);
  }
}

TEST_CASE("an unknown engine is refused") {
  const auto [engine, status] = open_engine("bdb", {});
  CHECK(engine == nullptr);
  CHECK(status.code() == Status::Code::kInvalid);
  CHECK(status.message().contains("bdb"));
}

TEST_CASE("the figures move") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());

  CHECK_FALSE(engine->version().empty());
  CHECK(engine->name() == engine.name());
  CHECK(engine->stats().cache_capacity == engine.options().cache_bytes);
  const EngineStats before = engine->stats();
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(engine.put(kMeta, "k" + std::to_string(i), noise(500, static_cast<uint64_t>(i))).ok());
  }
  const EngineStats after = engine->stats();
  CHECK(after.bytes_written >= before.bytes_written + 1'000'000);
  CHECK(after.memtable_bytes > before.memtable_bytes);
  CHECK(after.memory_bytes > before.memory_bytes);
  CHECK_FALSE(after.writes_stopped);
  if (engine.persistent()) CHECK(after.disk_bytes >= before.disk_bytes + 1'000'000);
  if (engine.name() != "leveldb") CHECK(after.estimated_keys == 2000);
  REQUIRE(engine->flush().ok());  // what is flushed behind the writes counts, too, while it lasts
  engine->reset_stats();
  CHECK(engine->stats().bytes_written == 0);
}

TEST_CASE("the disk bytes are those of the tables and logs") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine.persistent()) return;
  INFO(engine.name());

  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) {
      REQUIRE(
          engine.put(kMeta, "k" + std::to_string(i), noise(500, static_cast<uint64_t>(i))).ok());
    }
    CHECK(tells_its_disk_bytes(engine));
    if (round == 0) REQUIRE(engine->flush().ok());
    if (round == 1) engine.reopen();
    CHECK(tells_its_disk_bytes(engine));
  }
}

}  // namespace ingot::storage
