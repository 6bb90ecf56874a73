// Snapshots and atomic batches while other threads write, on every engine.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using namespace std::chrono_literals;

constexpr int kKeys = 16;
// A cursor of an old snapshot steps over every younger version: enough of them, not millions.
constexpr int kRoundsMax = 20'000;

std::string key_of(int i) {
  return "key" + std::to_string(i);
}

// Writes rounds of batches that give every key, in two spaces, the same number. Any thread.
class Writer {
 public:
  Writer(Engine* engine, int writers) : engine_(engine) {
    write_round();  // before anybody reads
    for (int i = 0; i < writers; ++i) {
      threads_.emplace_back([this] {
        while (!stop_ && failures_ == 0 && rounds_ < kRoundsMax) write_round();
      });
    }
  }
  ~Writer() { stop(); }

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int rounds() const { return rounds_; }
  int failures() const { return failures_; }

 private:
  void write_round() {
    const auto batch = engine_->new_batch();
    const std::string number = std::to_string(++rounds_);
    for (int i = 0; i < kKeys; ++i) {
      batch->put(Space::kMeta, key_of(i), number);
      batch->remove(Space::kData, key_of(i));
      batch->put(Space::kData, key_of(i), number);
    }
    if (!engine_->write(*batch, Durability::kBuffered).ok()) ++failures_;
  }

  Engine* const engine_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::atomic<int> failures_ = 0;
  std::vector<std::thread> threads_;
};

// The number that all keys have at the snapshot, or what is wrong.
std::string common_number(Engine* engine, const Snapshot* snapshot) {
  std::vector<std::string> names;
  for (int i = 0; i < kKeys; ++i) names.push_back(key_of(i));
  std::string number;
  if (engine->get(snapshot, Space::kMeta, names[0], Tier::kDisk, &number, nullptr) !=
      Lookup::kFound) {
    return "get found nothing";
  }
  std::string other;
  for (const std::string& name : names) {
    const Lookup outcome = engine->get(snapshot, Space::kData, name, Tier::kDisk, &other, nullptr);
    if (outcome != Lookup::kFound || other != number) return "two spaces differ";
  }
  CursorOptions options;
  options.snapshot = snapshot;
  int seen = 0;
  const auto cursor = engine->new_cursor(Space::kMeta, options);
  for (cursor->seek(""); cursor->valid(); cursor->next(), ++seen) {
    if (cursor->value() != number) return "cursor differs from get";
  }
  return seen == kKeys ? number : "cursor lost keys";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

TEST_CASE("a snapshot shows one state while others write") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  Writer writer(&*engine, 2);

  std::atomic<int> snapshots = 0;
  std::vector<std::string> problems(3);
  std::vector<std::thread> readers;
  for (std::string& problem : problems) {
    readers.emplace_back([&] {
      const auto end = std::chrono::steady_clock::now() + 400ms;
      while (problem.empty() && std::chrono::steady_clock::now() < end) {
        const auto snapshot = engine->new_snapshot();
        const std::string first = common_number(&*engine, snapshot.get());
        const std::string again = common_number(&*engine, snapshot.get());
        if (!is_number(first)) problem = first;
        if (first != again) problem = "the snapshot moved from " + first + " to " + again;
        ++snapshots;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  writer.stop();
  for (const std::string& problem : problems) CHECK(problem.empty());
  CHECK(writer.failures() == 0);
  CHECK(writer.rounds() > 10);
  CHECK(snapshots > 10);
}

TEST_CASE("a snapshot survives flushes and compactions") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  Writer writer(&*engine, 1);
  const auto snapshot = engine->new_snapshot();
  const std::string number = common_number(&*engine, snapshot.get());
  for (int i = 0; i < 3; ++i) {
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->compact(Space::kMeta, {}).ok());
    CHECK(common_number(&*engine, snapshot.get()) == number);
  }
  writer.stop();
  CHECK(is_number(number));
}

TEST_CASE("a write that returned is seen by every thread") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  std::atomic<int> acknowledged = 0;
  std::atomic<bool> stop = false;
  std::atomic<int> stale = 0;
  std::thread reader([&] {
    std::string value;
    while (!stop) {
      const int at_least = acknowledged;
      const Lookup lookup =
          engine->get(nullptr, Space::kMeta, "counter", Tier::kDisk, &value, nullptr);
      if (at_least > 0 && (lookup != Lookup::kFound || std::stoi(value) < at_least)) ++stale;
    }
  });
  for (int i = 1; i <= 3000; ++i) {
    if (!engine.put(Space::kMeta, "counter", std::to_string(i)).ok()) break;
    acknowledged = i;
  }
  stop = true;
  reader.join();
  CHECK(acknowledged == 3000);
  CHECK(stale == 0);
}

}  // namespace ingot::storage
