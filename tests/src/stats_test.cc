// Counters, rates and the list of clients behind INFO and CLIENT LIST.
#include "src/metrics/stats.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "src/contract/client_registry.h"
#include "src/server/info.h"

using ingot::contract::Client;
using ingot::contract::ClientRegistry;
using ingot::contract::CommandRow;
using ingot::metrics::add;
using ingot::metrics::Meter;
using ingot::metrics::MeterTotals;
using ingot::metrics::Sampler;
using ingot::metrics::Stats;

TEST_CASE("a rate is what came within the samples kept") {
  Sampler sampler;
  CHECK(sampler.per_second(Meter::kCommands) == 0);
  sampler.sample(1000, MeterTotals{100, 0, 0, 0, 0});
  CHECK(sampler.per_second(Meter::kCommands) == 0);
  sampler.sample(1500, MeterTotals{200, 50, 0, 0, 0});
  CHECK(sampler.per_second(Meter::kCommands) == Approx(200));
  CHECK(sampler.per_second(Meter::kBytesIn) == Approx(100));
  CHECK(sampler.per_second(Meter::kBytesOut) == 0);
  // Sixteen more at ten a second: the first two are forgotten.
  for (int64_t i = 1; i <= 16; ++i) {
    sampler.sample(1500 + i * 100, MeterTotals{200 + static_cast<uint64_t>(i), 50, 0, 0, 0});
  }
  CHECK(sampler.per_second(Meter::kCommands) == Approx(10));
  CHECK(sampler.per_second(Meter::kBytesIn) == 0);
}

TEST_CASE("a rate is zero while a counter that was reset is below its old total") {
  Sampler sampler;
  sampler.sample(0, MeterTotals{1000, 0, 0, 0, 0});
  sampler.sample(100, MeterTotals{5, 0, 0, 0, 0});
  CHECK(sampler.per_second(Meter::kCommands) == 0);
}

TEST_CASE("counters of commands belong to their rows, whoever comes first") {
  std::vector<CommandRow> rows(400);
  Stats stats(0);
  CHECK(stats.find(rows[0]) == nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const CommandRow& row : rows) add(stats.of(row).calls);
    });
  }
  for (std::thread& thread : threads) thread.join();
  add(stats.of(rows[7]).failed);
  for (const CommandRow& row : rows) CHECK(stats.find(row)->calls == 4);
  CHECK(stats.find(rows[7])->failed == 1);
  CHECK(stats.find(rows[8])->failed == 0);
  stats.reset({});
  CHECK(stats.find(rows[7])->calls + stats.find(rows[7])->failed == 0);
}

TEST_CASE("errors are counted in all and by their first word") {
  Stats stats(0);
  stats.count_error("ERR no such key");
  stats.count_error("ERR syntax error");
  stats.count_error("NOAUTH");
  CHECK(stats.errors() == std::map<std::string, uint64_t>{{"ERR", 2}, {"NOAUTH", 1}});
  CHECK(stats.error_replies == 3);
  stats.reset({.bytes_in = 10, .bytes_out = 20, .reads = 30, .writes = 40, .reclaimed = 50});
  CHECK(stats.errors().empty());
  CHECK(stats.error_replies == 0);
  CHECK(stats.bytes_in_before == 10);
  CHECK(stats.bytes_out_before == 20);
  CHECK(stats.reads_before == 30);
  CHECK(stats.writes_before == 40);
  CHECK(stats.reclaimed_before == 50);
}

TEST_CASE("the registry lists clients by id and forgets the connection of one that went") {
  ClientRegistry registry;
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(
        std::make_shared<Client>(registry.next_id(), "peer", "local", 5, false, 0, nullptr));
    clients.back()->kill = [] {};
  }
  registry.add(clients[2]);
  registry.add(clients[0]);
  registry.add(clients[1]);
  std::vector<uint64_t> seen;
  registry.for_each([&](const Client& client) { seen.push_back(client.id); });
  CHECK(seen == std::vector<uint64_t>{1, 2, 3});

  registry.remove(2);
  registry.remove(2);
  CHECK(registry.size() == 2);
  CHECK_FALSE(clients[1]->kill);
  int visited = 0;
  registry.visit(2, [&](Client&) { ++visited; });
  CHECK(visited == 0);
  registry.visit(3, [&](Client& client) { visited += client.kill ? 1 : 0; });
  CHECK(visited == 1);
}

TEST_CASE("how many keys' filters fit follows from the bits that each takes") {
  CHECK(ingot::server::keys_whose_filters_fit(150, 12) == 100);
  CHECK(ingot::server::keys_whose_filters_fit(150, 0) == 0);
}

TEST_CASE("a latency histogram knows each value to a sixteenth", "[stats]") {
  ingot::metrics::LatencyHistogram histogram;
  CHECK(histogram.percentile(50) == 0);
  std::vector<uint64_t> values;
  for (uint64_t value = 1; value < 2'000'000'000; value = value * 21 / 20 + 1) {
    values.push_back(std::min<uint64_t>(value, histogram.kNanosMax));
    histogram.record(value);
  }
  CHECK(histogram.count() == values.size());
  for (const double percent : {0.0, 1.0, 25.0, 50.0, 99.0, 100.0}) {
    const auto rank = static_cast<size_t>(
        std::max(1.0, std::ceil(percent / 100 * static_cast<double>(values.size()))));
    const uint64_t exact = values[rank - 1];
    INFO(percent);
    CHECK(histogram.percentile(percent) >= exact);
    CHECK(histogram.percentile(percent) <= exact + exact / 16 + 1);
  }
  uint64_t before = 0;
  for (uint64_t bound = 1; bound < 2'000'000'000; bound *= 2) {
    const auto exact = static_cast<uint64_t>(
        std::ranges::count_if(values, [&](uint64_t value) { return value <= bound; }));
    const auto above = static_cast<uint64_t>(std::ranges::count_if(
        values, [&](uint64_t value) { return value <= bound + bound / 16 + 1; }));
    CHECK(histogram.count_up_to(bound) >= exact);
    CHECK(histogram.count_up_to(bound) <= above);
    CHECK(histogram.count_up_to(bound) >= before);
    before = histogram.count_up_to(bound);
  }
  histogram.reset();
  CHECK(histogram.count() == 0);
}

TEST_CASE("the slow log keeps its newest entries within its bytes", "[stats]") {
  using ingot::metrics::SlowLog;
  SlowLog log;
  log.configure(0, 1'000'000);
  const std::vector<std::string> args(32, std::string(128, 'a'));
  for (int i = 0; i < 10'000; ++i) log.add({.args = args});
  CHECK(log.size() > SlowLog::kBytesMax / 8192);
  CHECK(log.size() < SlowLog::kBytesMax / 4096);
  CHECK(log.latest(1).front()->id == 9999);
  log.clear();
  log.configure(0, 2);
  for (int i = 0; i < 3; ++i) log.add({.args = args});
  CHECK(log.size() == 2);
}
