// Keys that are overwritten without a look at what they held: nobody waits for the disk, and in the
// end all is counted, indexed and dropped as if somebody had looked.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "storage/codec.h"
#include "storage/memory/memory_engine.h"
#include "tests/src/gated_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using storage::Space;
using test::InProcess;
using test::InProcessClient;

namespace {

constexpr auto kPatience = std::chrono::seconds(20);

// A server whose memory has nothing of the keys' records, and a disk that can be held up.
class ColdServer {
 public:
  explicit ColdServer(const std::function<void(storage::Batch&)>& written_before = {})
      : ColdServer(opened(written_before)) {}

  InProcess& server() { return *server_; }
  storage::GatedEngine& disk() { return *disk_; }
  void make_cold(bool markers_too = false) {
    memory_->set_cold([markers_too](Space space, std::string_view key) {
      if (space != Space::kMeta) return false;
      const bool is_marker = (storage::read_be32(key) & storage::kMarkersBit) != 0;
      return markers_too || !is_marker;
    });
  }

  storage::KeyCounts counts() {
    std::string record;
    storage::KeyCounts counts;
    const auto found = disk_->get(nullptr, Space::kSystem, storage::counts_key(0),
                                  storage::Tier::kDisk, &record, nullptr);
    if (found == storage::Lookup::kFound) CHECK(storage::decode_counts(record, &counts));
    return counts;
  }
  bool settles() {
    const auto ends = std::chrono::steady_clock::now() + kPatience;
    while (!counts().settled) {
      if (std::chrono::steady_clock::now() > ends) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  size_t records_in(Space space) {
    size_t records = 0;
    const auto cursor = disk_->new_cursor(space, {});
    for (cursor->seek({}); cursor->valid(); cursor->next()) ++records;
    return records;
  }
  uint64_t unread() { return server_->services().data.stats.unread_overwrites; }

 private:
  static std::unique_ptr<storage::Engine> opened(
      const std::function<void(storage::Batch&)>& written_before) {
    auto engine = std::move(storage::open_memory({}).first);
    if (!written_before) return engine;
    const auto batch = engine->new_batch();
    written_before(*batch);
    REQUIRE(engine->write(*batch, storage::Durability::kBuffered).ok());
    return engine;
  }
  explicit ColdServer(std::unique_ptr<storage::Engine> memory)
      : memory_(static_cast<storage::MemoryEngine*>(memory.get())) {
    auto gated = std::make_unique<storage::GatedEngine>(std::move(memory));
    disk_ = gated.get();
    server_ = std::make_unique<InProcess>(std::move(gated));
  }

  storage::MemoryEngine* memory_;
  storage::GatedEngine* disk_ = nullptr;
  std::unique_ptr<InProcess> server_;
};

// Commands that overwrite keys 0 to `keys`.
std::vector<InProcessClient::Line> sets(int keys) {
  std::vector<InProcessClient::Line> lines;
  for (int i = 0; i < keys; ++i) lines.push_back({"SET", "k" + std::to_string(i), "v"});
  return lines;
}

}  // namespace

TEST_CASE("overwriting does not wait for the disk, and is counted behind it", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"SET", "a", "1"}, {"SET", "b", "1", "PX", "500000"}, {"SET", "c", "1"}});
  cold.make_cold();
  cold.disk().disk_reads.close();
  CHECK(client.pipeline({{"SET", "a", "2"},
                         {"SET", "b", "2"},
                         {"SETEX", "c", "700", "2"},
                         {"MSET", "new", "2", "newer", "2", "new", "3"}}) ==
        "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
  CHECK(cold.unread() == 5);
  CHECK_FALSE(cold.counts().settled);
  // DBSIZE counts what is there.
  CHECK(client.run({"DBSIZE"}) == ":5\r\n");
  cold.disk().disk_reads.open();
  REQUIRE(cold.settles());
  CHECK(cold.counts().keys == 5);
  CHECK(cold.counts().expires == 1);
  CHECK(cold.records_in(Space::kExpiry) == 1);  // c's; that of b's old record has gone
  CHECK(client.pipeline({{"DBSIZE"}, {"GET", "new"}, {"TTL", "b"}, {"TTL", "c"}}) ==
        ":5\r\n$1\r\n3\r\n:-1\r\n:700\r\n");
}

TEST_CASE("what depends on the old value reads it", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"SET", "a", "1", "PX", "500000"}, {"SET", "b", "1"}});
  cold.make_cold();
  CHECK(client.pipeline({{"SET", "a", "2", "KEEPTTL"},
                         {"SET", "b", "2", "NX"},
                         {"SET", "no", "2", "XX"},
                         {"SET", "b", "3", "GET"},
                         {"SETNX", "b", "4"},
                         {"GETSET", "b", "5"}}) ==
        "+OK\r\n$-1\r\n$-1\r\n$1\r\n1\r\n:0\r\n$1\r\n3\r\n");
  CHECK(cold.unread() == 0);
  CHECK(client.run({"PTTL", "a"}) == ":500000\r\n");
}

TEST_CASE("data of version 1 has no markers, and is read before it is overwritten",
          "[exec][settling]") {
  ColdServer cold([](storage::Batch& batch) {
    std::string number;
    storage::append_le32(&number, 1);
    batch.put(Space::kSystem, storage::version_key(), number);
    std::string counts;
    storage::append_le64(&counts, 2);
    storage::append_le64(&counts, 0);
    batch.put(Space::kSystem, storage::counts_key(0), counts);
    for (const char* key : {"a", "b"}) batch.put(Space::kMeta, storage::meta_key(0, key), "\x01v");
  });
  InProcessClient client(cold.server());
  cold.make_cold();
  CHECK(client.pipeline({{"SET", "a", "2"}, {"SET", "c", "2"}, {"GET", "b"}, {"DBSIZE"}}) ==
        "+OK\r\n+OK\r\n$1\r\nv\r\n:3\r\n");
  CHECK(cold.unread() == 0);
  std::string version;
  cold.disk().get(nullptr, Space::kSystem, storage::version_key(), storage::Tier::kDisk, &version,
                  nullptr);
  CHECK(storage::read_le32(version) == storage::kFormatVersion);
  // A new keyspace has had markers from the beginning.
  client.pipeline({{"FLUSHDB"}, {"SET", "a", "1"}});
  CHECK(client.run({"SET", "a", "2"}) == "+OK\r\n");
  CHECK(cold.unread() > 0);
}

TEST_CASE("a flush behind a settling that failed removes all", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.run({"SET", "new", "1"});  // not counted yet
  cold.disk().fail_after(0);
  cold.disk().disk_reads.open();
  while (!cold.disk().failed()) std::this_thread::yield();
  cold.disk().fail_after(-1);
  REQUIRE(cold.server().services().data.store.engine().try_resume().ok());
  CHECK(client.pipeline({{"FLUSHDB"}, {"EXISTS", "new"}, {"DBSIZE"}}) == "+OK\r\n:0\r\n:0\r\n");
}

TEST_CASE("what changes behind an overwrite is counted once", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"SET", "a", "1"}, {"SET", "b", "1"}, {"SET", "c", "1", "PX", "500000"}});
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.pipeline({{"SET", "a", "2"}, {"SET", "c", "2"}, {"SET", "new", "2"}});
  cold.disk().disk_reads.open();
  // In one group with it, and in later ones; of keys that were there and of one that was not.
  client.pipeline({{"MULTI"}, {"SET", "b", "2"}, {"DEL", "b"}, {"SET", "d", "1"}, {"EXEC"}});
  client.pipeline({{"DEL", "a"}, {"DEL", "new"}, {"PEXPIRE", "c", "1000"}, {"RENAME", "c", "e"}});
  REQUIRE(cold.settles());
  CHECK(cold.counts().keys == 2);  // d, e
  CHECK(cold.counts().expires == 1);
  CHECK(client.run({"DBSIZE"}) == ":2\r\n");
}

TEST_CASE("an overwritten collection is dropped", "[exec][settling]") {
  const bool markers_too = GENERATE(false, true);
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"RPUSH", "list", std::string(3000, 'x')}, {"SET", "other", "1"}});
  CHECK(cold.counts().collections == 1);
  CHECK(cold.records_in(Space::kMeta) == 3);
  cold.make_cold(markers_too);
  CHECK(client.run({"SET", "other", "2"}) == "+OK\r\n");
  CHECK(client.run({"SET", "list", "now a string"}) == "+OK\r\n");
  // Its marker tells; where that is not in memory either, the record does.
  CHECK(cold.unread() == (markers_too ? 0 : 1));
  CHECK(cold.counts().collections == 0);
  CHECK(cold.records_in(Space::kMeta) == 2);
  REQUIRE(cold.settles());
  CHECK(cold.counts().keys == 2);
}

TEST_CASE("an overwrite that is not committed leaves nothing to settle", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"SET", "a", "1"}});
  cold.make_cold();
  cold.disk().fail_after(0);
  CHECK(client.pipeline({{"SET", "a", "2"}, {"SET", "new", "1"}}).starts_with("-MISCONF"));
  cold.disk().fail_after(-1);
  CHECK(cold.counts().keys == 1);
  CHECK(cold.counts().settled);
  CHECK(cold.unread() == 0);
}

TEST_CASE("what a failed commit was to settle is counted anew", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.let_collector_start();  // or it is what fails
  client.pipeline({{"SET", "a", "1"}});
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.pipeline({{"SET", "new", "2"}, {"SET", "newer", "2"}});
  cold.disk().fail_after(0);
  cold.disk().disk_reads.open();
  while (!cold.disk().failed()) std::this_thread::yield();
  cold.disk().fail_after(-1);
  REQUIRE(cold.server().services().data.store.engine().try_resume().ok());
  CHECK(client.pipeline({{"SET", "a", "2"}, {"DBSIZE"}}) == "+OK\r\n:3\r\n");
  CHECK_FALSE(cold.counts().settled);
  cold.server().now_ms += 2'000;
  client.run({"SET", "wake", "the writer"});
  REQUIRE(cold.settles());
  CHECK(cold.counts().keys == 4);
}

TEST_CASE("a flushed database is not settled any more", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline({{"SET", "a", "1"}});
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.pipeline({{"SET", "a", "2"}, {"SET", "new", "2"}, {"FLUSHDB"}, {"SET", "b", "1"}});
  cold.disk().disk_reads.open();
  CHECK(client.run({"DBSIZE"}) == ":1\r\n");
  CHECK(client.pipeline({{"SET", "b", "2"}, {"SET", "c", "2"}, {"DBSIZE"}}) ==
        "+OK\r\n+OK\r\n:2\r\n");
}

TEST_CASE("reads of a slow disk are given up soon where an estimate will do", "[exec][settling]") {
  ColdServer cold;
  InProcessClient client(cold.server());
  CHECK(client.run({"CONFIG", "SET", "key-count", "estimate"}) == "+OK\r\n");
  client.pipeline(sets(10));
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.pipeline(sets(4));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  client.run({"SET", "k5", "v"});
  cold.disk().disk_reads.open();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(cold.counts().settled);
  cold.server().now_ms += 2'000;
  client.run({"DEL", "k1"});
  REQUIRE(cold.settles());
  CHECK(cold.counts().keys == 9);
}

TEST_CASE("reads that fall behind are given up, and the keys are counted", "[exec][settling]") {
  constexpr int kKeys = 70'000;  // more than may be open
  constexpr int kOld = 1'000;
  ColdServer cold;
  InProcessClient client(cold.server());
  client.pipeline(sets(kOld));
  client.run({"SET", "expires", "1", "PX", "10000000"});
  cold.make_cold();
  cold.disk().disk_reads.close();
  client.pipeline(sets(kKeys));
  cold.disk().disk_reads.open();
  // What expires leaves an entry in an index, which nobody would take away now: it is read again.
  const uint64_t unread = cold.unread();
  CHECK(unread == kKeys);
  CHECK_FALSE(cold.counts().settled);
  CHECK(client.run({"SET", "expires", "2", "PX", "20000000"}) == "+OK\r\n");
  CHECK(cold.unread() == unread);
  CHECK(cold.records_in(Space::kExpiry) == 1);
  CHECK(client.run({"DBSIZE"}) == ":" + std::to_string(kKeys + 1) + "\r\n");
  CHECK_FALSE(cold.counts().settled);

  SECTION("by themselves") {
    cold.server().now_ms += 2'000;
    client.run({"DEL", "k1"});  // wakes the writer, whose clock this is
    REQUIRE(cold.settles());
    CHECK(cold.counts().keys == kKeys);
  }
  SECTION("while others go on") {
    cold.disk().walks.close();
    cold.server().now_ms += 2'000;
    client.pipeline({{"DEL", "k1"}, {"SET", "k2", "w"}, {"SET", "new", "1"}, {"DEL", "k3"}});
    cold.disk().walks.open();
    REQUIRE(cold.settles());
    CHECK(cold.counts().keys == kKeys);
    CHECK(cold.counts().expires == 1);
  }
  SECTION("of a database that is flushed meanwhile") {
    cold.disk().walks.close();
    cold.server().now_ms += 2'000;
    client.pipeline({{"DEL", "k1"}, {"FLUSHDB"}, {"SET", "b", "1"}});
    cold.disk().walks.open();
    CHECK(client.run({"DBSIZE"}) == ":1\r\n");
  }
}
