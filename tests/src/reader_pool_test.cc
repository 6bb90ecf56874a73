// The reader pool's look-ups, on a ring and without one.
#include "src/data/reader_pool.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

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

TEST_CASE("a reader pool: endless scripts leave a place to long work, and are given up") {
  using namespace std::chrono_literals;
  const int threads = GENERATE(1, 2, 3, 8);
  std::atomic<bool> ended = false;
  std::atomic<int> running = 0;
  std::atomic<int> given_up = 0;
  ReaderPool pool(threads);
  const auto endless = [&](ReaderPool::Turn turn) {
    if (turn == ReaderPool::Turn::kGiveUp) {
      ++given_up;
      return;
    }
    ++running;
    while (!ended) std::this_thread::sleep_for(1ms);
  };
  constexpr int kScripts = 20;
  const int places = std::max(threads / 2, 1);
  for (int i = 0; i < kScripts; ++i) pool.submit_script(endless);
  while (running < places) std::this_thread::yield();
  const auto runs = [&](Work work) {
    std::atomic<bool> done = false;
    pool.submit([&] { done = true; }, work);
    while (!done) std::this_thread::yield();
  };
  runs(Work::kLong);
  runs(Work::kShort);
  pool.give_up_scripts(1h);
  CHECK(given_up == 0);
  std::this_thread::sleep_for(2ms);
  pool.give_up_scripts(1ms);
  CHECK(given_up == kScripts - places);
  CHECK(running == places);
  CHECK(pool.queue_depth() == 0);
  SECTION("also when there are fewer threads") {
    CHECK(pool.resize(1));
    runs(Work::kLong);
    runs(Work::kShort);
  }
  SECTION("scripts follow when they end") {
    ended = true;
    pool.submit_script(endless);
    while (running <= places) std::this_thread::yield();
  }
  ended = true;
}

TEST_CASE("a reader pool: scripts run however much else there is") {
  std::atomic<bool> ran = false;
  std::atomic<int> chains = 0;
  std::function<void(Work)> again;
  ReaderPool pool(2);
  // Each leaves another one behind, so that neither queue is ever empty.
  again = [&](Work work) {
    if (ran) {
      --chains;
      return;
    }
    pool.submit([&again, work] { again(work); }, work);
  };
  for (int i = 0; i < 10; ++i) {
    for (const Work work : {Work::kShort, Work::kLong}) {
      ++chains;
      pool.submit([&again, work] { again(work); }, work);
    }
  }
  pool.submit_script([&](ReaderPool::Turn) { ran = true; });
  while (chains > 0) std::this_thread::yield();
  CHECK(ran);
}

}  // namespace ingot::data
