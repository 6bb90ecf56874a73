// The hooks of the in-memory engine, which other tests build upon.
#include "storage/memory/memory_engine.h"

#include <catch2/catch.hpp>
#include <utility>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr Space kMeta = Space::kMeta;

MemoryEngine& hooks(TestEngine* engine) {
  return static_cast<MemoryEngine&>(**engine);
}

// Something fails while it asks whether the disk has healed.
class FailsMeanwhile : public MemoryEngine {
 public:
  using MemoryEngine::MemoryEngine;

 protected:
  Status do_try_resume() override {
    Status status = MemoryEngine::do_try_resume();
    if (!std::exchange(has_failed_, true)) (void)note({Status::Code::kNoSpace, "meanwhile"});
    return status;
  }

 private:
  bool has_failed_ = false;
};

}  // namespace

TEST_CASE("memory engine: what fails while an engine asks whether the disk has healed counts") {
  FailsMeanwhile engine(TestEngine::small_options());
  const auto write = [&] { return engine.write(*engine.new_batch(), Durability::kBuffered); };
  engine.fail_next_write({Status::Code::kNoSpace, "full"});
  REQUIRE(write().code() == Status::Code::kNoSpace);
  CHECK(engine.try_resume().code() == Status::Code::kNoSpace);
  CHECK(engine.health() == Health::kNoSpace);
  CHECK(engine.try_resume().ok());
  CHECK(engine.health() == Health::kHealthy);
  CHECK(write().ok());
}

TEST_CASE("memory engine: a cold key misses until the disk was read") {
  TestEngine engine("memory");
  for (const char* key : {"cold1", "cold2", "warm"}) REQUIRE(engine.put(kMeta, key, "v").ok());
  hooks(&engine).set_cold(
      [](Space space, std::string_view key) { return space == kMeta && key.starts_with("cold"); });
  CHECK(engine.peek(kMeta, "warm") == "v");
  CHECK(engine.peek(kMeta, "absent") == "<absent>");
  CHECK(engine.peek(kMeta, "cold1") == "<miss>");
  CHECK(engine.peek(kMeta, "cold absent") == "<miss>");
  CHECK(engine.get(kMeta, "cold1") == "v");
  CHECK(engine.peek(kMeta, "cold1") == "v");
  CHECK(engine.get(kMeta, "cold absent") == "<absent>");
  CHECK(engine.peek(kMeta, "cold absent") == "<absent>");
  CHECK(engine.peek(kMeta, "cold2") == "<miss>");

  CursorOptions options;
  options.tier = Tier::kCacheOnly;
  const auto cursor = engine->new_cursor(kMeta, options);
  cursor->seek("");
  REQUIRE(cursor->valid());
  CHECK(cursor->key() == "cold1");
  cursor->next();
  CHECK_FALSE(cursor->valid());
  CHECK(cursor->outcome() == Lookup::kMiss);
  cursor->seek("d");
  CHECK(cursor->valid());
  CHECK(cursor->outcome() == Lookup::kFound);
  CHECK(engine.scan(kMeta).size() == 3);           // reads the disk
  CHECK(engine.scan(kMeta, options).size() == 3);  // and then need not

  hooks(&engine).set_cold({});
  CHECK(engine.peek(kMeta, "cold absent too") == "<absent>");
}

TEST_CASE("memory engine: a write that is made to fail changes nothing") {
  EngineOptions options;
  std::vector<Status::Code> reported;
  options.on_background_error = [&](const Status& s) { reported.push_back(s.code()); };
  TestEngine engine("memory", options);
  REQUIRE(engine.put(kMeta, "k", "old").ok());

  SECTION("a full disk, until it is resumed") {
    hooks(&engine).fail_next_write({Status::Code::kNoSpace, "full"});
    CHECK(engine.put(kMeta, "k", "new").code() == Status::Code::kNoSpace);
    CHECK(engine.put(kMeta, "k", "new").code() == Status::Code::kNoSpace);
    CHECK(engine.get(kMeta, "k") == "old");
    CHECK(engine->try_resume().ok());
    CHECK(engine.put(kMeta, "k", "new").ok());
    CHECK(reported == std::vector{Status::Code::kNoSpace});
  }
  SECTION("a failed sync, for good") {
    hooks(&engine).fail_next_write({Status::Code::kIo, "fsync"});
    CHECK(engine.put(kMeta, "k", "new", Durability::kSynced).code() == Status::Code::kIo);
    CHECK(engine->try_resume().code() == Status::Code::kIo);
    CHECK(engine->sync().code() == Status::Code::kIo);
    CHECK(engine.put(kMeta, "k", "new").code() == Status::Code::kIo);
    CHECK(engine.get(kMeta, "k") == "old");
    CHECK(reported == std::vector{Status::Code::kIo});
  }
}

TEST_CASE("memory engine: old versions go when no snapshot needs them") {
  TestEngine engine("memory");
  REQUIRE(engine.put(kMeta, "k", "first").ok());
  const uint64_t one_version = engine->stats().memory_bytes;
  auto snapshot = engine->new_snapshot();
  for (int i = 0; i < 1000; ++i) REQUIRE(engine.put(kMeta, "k", "later").ok());
  CHECK(engine->stats().memory_bytes == 2 * one_version);
  CHECK(engine.get(kMeta, "k", snapshot.get()) == "first");
  REQUIRE(engine.remove(kMeta, "k").ok());
  CHECK(engine.get(kMeta, "k", snapshot.get()) == "first");
  snapshot.reset();
  REQUIRE(engine.put(kMeta, "l", "first").ok());  // the next write clears up, whatever its key
  CHECK(engine->stats().memory_bytes == one_version);
  CHECK(engine->stats().estimated_keys == 1);
}

}  // namespace ingot::storage
