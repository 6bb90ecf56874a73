// What a LogLedger syncs, and when.
#include "storage/log_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "tests/storage/full_file.h"
#include "tests/storage/temporary_directory.h"

using namespace ingot::storage;

namespace {

SyncedMark mark_in(const TemporaryDirectory& directory) {
  SyncedMark found;
  REQUIRE(read_synced_mark(directory.file(""), &found));
  return found;
}

}  // namespace

TEST_CASE(
    "LogLedger: a log has room for the writes under way and little more, however many went "
    "before") {
  TemporaryDirectory directory;
  LogLedger ledger(directory.file(""));
  uint64_t allocated = 0;  // of the newest log
  const LogLedger::Disk disk = {.sync = [] { return Status(); },
                                .allocate =
                                    [&](uint64_t offset, uint64_t bytes) {
                                      allocated = offset + bytes;
                                      return Status();
                                    },
                                .cut = [](uint64_t) { return Status(); }};
  auto log = ledger.begin(1, disk);
  constexpr uint64_t kWrite = 1000;
  for (uint64_t number = 2; number < 50; ++number) {
    for (int i = 0; i < 200; ++i) {
      REQUIRE(ledger.make_room(kWrite).ok());
      ledger.appended(*log, kWrite);
      ledger.release_room(kWrite);
    }
    CHECK(allocated >= 200 * kWrite);
    // In the middle of a write, whose room goes along.
    REQUIRE(ledger.make_room(10 * kWrite).ok());
    allocated = 0;
    log = ledger.begin(number, disk);
    CHECK(allocated >= 10 * kWrite);
    CHECK(allocated < 20 * kWrite);
    ledger.appended(*log, 10 * kWrite);
    ledger.release_room(10 * kWrite);
  }
}

TEST_CASE("LogLedger: a log has room for the write under way though others take what is given up") {
  TemporaryDirectory directory;
  LogLedger ledger(directory.file(""));
  bool is_full = false;
  uint64_t allocated = 0;  // of the newest log
  const LogLedger::Disk disk = {.sync = [] { return Status(); },
                                .allocate =
                                    [&](uint64_t offset, uint64_t bytes) {
                                      if (is_full) return Status(Status::Code::kNoSpace, "full");
                                      allocated = offset + bytes;
                                      return Status();
                                    },
                                .cut =
                                    [&](uint64_t) {
                                      is_full = true;
                                      return Status();
                                    }};
  (void)ledger.begin(1, disk);
  REQUIRE(ledger.make_room(1000).ok());
  allocated = 0;
  (void)ledger.begin(2, disk);
  CHECK(allocated >= 1000);
}

TEST_CASE("LogLedger: bytes go into a log when those before it are on stable storage") {
  TemporaryDirectory directory;
  LogLedger ledger(directory.file(""));
  int syncs = 0;
  int cuts = 0;
  Status answer;
  Status cut_answer;
  const LogLedger::Disk disk = {.sync =
                                    [&] {
                                      ++syncs;
                                      return answer;
                                    },
                                .allocate = [](uint64_t, uint64_t) { return Status(); },
                                .cut =
                                    [&](uint64_t) {
                                      ++cuts;
                                      return cut_answer;
                                    }};
  const auto first = ledger.begin(1, disk);
  REQUIRE(ledger.before_append(*first).ok());
  ledger.appended(*first, 100);
  CHECK(syncs == 0);

  const auto second = ledger.begin(2, disk);
  SECTION("once") {
    REQUIRE(ledger.before_append(*second).ok());
    CHECK(syncs == 1);
    ledger.appended(*second, 100);
    REQUIRE(ledger.before_append(*second).ok());
    CHECK(syncs == 1);
  }
  SECTION("not at all when they are") {
    REQUIRE(ledger.sync().ok());
    REQUIRE(ledger.before_append(*second).ok());
    CHECK(syncs == 1);
  }
  SECTION("or not, when that fails") {
    answer = {Status::Code::kNoSpace, "full"};
    CHECK(ledger.before_append(*second).code() == Status::Code::kIo);
    CHECK(LogLedger::torn(*second));
    // Nor ever after: the system may have dropped what it could not write, and tell of success.
    answer = {};
    CHECK(ledger.before_append(*second).code() == Status::Code::kIo);
    CHECK(ledger.sync().code() == Status::Code::kIo);
    CHECK(syncs == 1);
  }
  SECTION("and cut where an append failed") {
    cut_answer = {Status::Code::kIo, "no"};
    ledger.tear(*first);
    CHECK(ledger.sync().ok());
    CHECK(ledger.before_append(*second).code() == Status::Code::kIo);
    CHECK(cuts >= 3);  // it is tried again each time
    cut_answer = {};
    const auto third = ledger.begin(3, disk);
    CHECK(ledger.before_append(*third).ok());
  }
}

TEST_CASE("LogLedger: a log begins behind one that is not synced when all before that is") {
  TemporaryDirectory directory;
  LogLedger ledger(directory.file(""));
  std::mutex mutex;  // held: the disk does not answer
  std::atomic<int> syncs = 0;
  const LogLedger::Disk disk = {.sync =
                                    [&] {
                                      const std::lock_guard lock(mutex);
                                      ++syncs;
                                      return Status();
                                    },
                                .allocate = [](uint64_t, uint64_t) { return Status(); },
                                .cut = [](uint64_t) { return Status(); }};
  const auto mark = [&] { return mark_in(directory); };
  const auto first = ledger.begin(1, disk);
  REQUIRE(ledger.begin_marking().ok());
  CHECK(mark().log == 1);
  CHECK(read_log_link(directory.file(""))->log == 0);
  REQUIRE(ledger.before_append(*first).ok());
  ledger.appended(*first, 100);

  std::unique_lock slow(mutex);
  const auto second = ledger.begin(2, disk);
  REQUIRE(ledger.before_append(*second).ok());
  ledger.appended(*second, 200);
  CHECK(syncs == 0);
  CHECK(mark().log == 1);
  const auto link = read_log_link(directory.file(""));
  CHECK(link->log == 2);
  CHECK(link->before == 1);
  CHECK(link->before_bytes == 100);

  SECTION("and the one before it is synced without being asked") {
    slow.unlock();
    while (mark().log < 2) std::this_thread::yield();
    CHECK(syncs == 1);
    CHECK(mark().bytes == 0);
  }
  SECTION("and the next one waits for that") {
    const auto third = ledger.begin(3, disk);
    std::atomic<bool> begun = false;
    std::thread writer([&] {
      CHECK(ledger.before_append(*third).ok());
      begun = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(begun);
    slow.unlock();
    writer.join();
    CHECK(ledger.waited_micros() > 0);
    CHECK(syncs >= 1);
    CHECK(mark().log >= 2);
  }
  SECTION("and it is synced before what is behind it") {
    slow.unlock();
    REQUIRE(ledger.sync(*second).ok());
    CHECK(syncs == 2);
    CHECK(mark() == SyncedMark{.log = 2, .bytes = 200});
  }
  SECTION("and when it ends") {
    slow.unlock();
    ledger.end(*first);
    CHECK(syncs == 1);
  }
}

TEST_CASE("LogLedger: a disk that is too full for the mark refuses a log, not a sync") {
  TemporaryDirectory directory;
  LogLedger ledger(directory.file(""));
  const LogLedger::Disk disk = {.sync = [] { return Status(); },
                                .allocate = [](uint64_t, uint64_t) { return Status(); },
                                .cut = [](uint64_t) { return Status(); }};
  const auto mark = [&] { return mark_in(directory); };
  const auto first = ledger.begin(1, disk);
  REQUIRE(ledger.begin_marking().ok());
  REQUIRE(ledger.before_append(*first).ok());
  ledger.appended(*first, 100);
  std::optional<FullFile> full(std::in_place, directory.file("SYNCED"));
  const auto second = ledger.begin(2, disk);
  CHECK(ledger.sync().ok());
  CHECK(mark().log == 1);
  CHECK(ledger.before_append(*second).code() == Status::Code::kNoSpace);
  CHECK(LogLedger::torn(*second));

  full.reset();
  const auto third = ledger.begin(3, disk);
  CHECK(ledger.before_append(*third).ok());
  CHECK(mark() == SyncedMark{.log = 3, .bytes = 0});
}
