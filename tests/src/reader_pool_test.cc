// The reader pool's look-ups, on a ring and without one.
#include "src/data/reader_pool.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>

namespace ingot::data {
namespace {

using storage::NoWaitReads;
using storage::ReadRing;

std::unique_ptr<ReadRing> ring_if(bool wanted) {
  storage::Status why;
  return wanted ? ReadRing::open(ReaderPool::kLookupsUnderWay, &why) : nullptr;
}

}  // namespace

TEST_CASE("a reader pool runs all look-ups and tasks, also those that are left when it closes") {
  const bool has_ring = GENERATE(false, true);
  std::atomic<int> done = 0;
  std::atomic<int> handed_on = 0;
  {
    ReaderPool pool(2, ring_if(has_ring));
    for (int round = 0; round < 50; ++round) {
      std::vector<ReaderPool::Lookup> lookups;
      const auto work = [&] {
        pool.submit([&] { ++handed_on; });
        ++done;
        return true;
      };
      for (int i = 0; i < 40; ++i) lookups.push_back({.work = work, .reads = {}});
      pool.look_up(std::move(lookups));
    }
  }
  CHECK(done == 2000);
  CHECK(handed_on == 2000);
}

TEST_CASE("a reader pool: what waits for the disk on a ring does not hold up the others") {
  ReaderPool pool(2, ring_if(true));
  if (!pool.has_ring()) return;
  // A pipe gives nothing until somebody writes: a disk that takes its time.
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const auto slow = std::make_shared<storage::OpenFile>(ends[0], 1, /*direct=*/true);
  std::atomic<bool> slow_is_done = false;
  std::atomic<int> done = 0;
  const auto wait_for_it = [&] {
    char byte = 0;
    if (NoWaitReads::current()->read(slow, 0, 1, &byte).kind ==
        NoWaitReads::Answer::Kind::kWanted) {
      return false;
    }
    slow_is_done = byte == 'x';
    return true;
  };
  pool.look_up({.work = wait_for_it, .reads = {}});
  for (int i = 0; i < 1000; ++i) {
    const auto work = [&] {
      ++done;
      return true;
    };
    pool.look_up({.work = work, .reads = {}});
  }
  while (done < 1000) std::this_thread::yield();
  CHECK_FALSE(slow_is_done);
  REQUIRE(::write(ends[1], "x", 1) == 1);
  while (!slow_is_done) std::this_thread::yield();
  ::close(ends[1]);
}

}  // namespace ingot::data
