// Who has read what: remembered, told, forgotten, counted.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "src/contract/client.h"
#include "src/exec/tracking_table.h"

namespace ingot::exec {
namespace {

TEST_CASE("a table of reads does as a map of sets does, and counts", "[tracking]") {
  contract::Tracking tracking;
  TrackingTable table(tracking);
  std::map<std::string, std::set<uint64_t>> model;
  uint64_t random = 1;
  const auto draw = [&](uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % below;
  };
  for (int step = 0; step < 20'000; ++step) {
    const std::string key = "key:" + std::to_string(draw(200));
    switch (draw(4)) {
      case 0: {
        const TrackingTable::Clients taken = table.take(key);
        REQUIRE(std::set<uint64_t>(taken.begin(), taken.end()) == model[key]);
        model.erase(key);
        break;
      }
      case 1:
        model.erase(key);
        if (table.size() > 0) {
          const std::string any = table.any_key();
          REQUIRE_FALSE(table.take(any).empty());
          model.erase(any);
        }
        (void)table.take(key);
        break;
      default: {
        const uint64_t client = draw(5);
        table.remember(key, client);
        model[key].insert(client);
      }
    }
    size_t items = 0;
    std::erase_if(model, [&](const auto& entry) {
      items += entry.second.size();
      return entry.second.empty();
    });
    REQUIRE(table.size() == model.size());
    REQUIRE(tracking.remembered.keys == model.size());
    REQUIRE(tracking.remembered.items == items);
  }
  table.clear();
  CHECK(table.size() == 0);
  CHECK(tracking.remembered.items == 0);
  CHECK(tracking.remembered.bytes == 0);
}

TEST_CASE("what is remembered has a bound in keys and in bytes", "[tracking]") {
  contract::Tracking tracking;
  TrackingTable table(tracking);
  tracking.keys_max = 2;
  table.remember("a", 1);
  table.remember("b", 1);
  CHECK_FALSE(tracking.is_too_much());
  table.remember("c", 1);
  CHECK(tracking.is_too_much());
  tracking.keys_max = 0;
  CHECK_FALSE(tracking.is_too_much());
  tracking.bytes_max = 10;
  CHECK(tracking.is_too_much());
}

TEST_CASE("modes tell whether a read is remembered", "[tracking]") {
  namespace tracks = contract::tracks;
  using contract::remembers_reads;
  CHECK_FALSE(remembers_reads(0));
  CHECK(remembers_reads(tracks::kOn));
  CHECK_FALSE(remembers_reads(tracks::kOn | tracks::kBroadcast));
  CHECK_FALSE(remembers_reads(tracks::kOn | tracks::kOptIn));
  CHECK(remembers_reads(tracks::kOn | tracks::kOptIn | tracks::kCaching));
  CHECK(remembers_reads(tracks::kOn | tracks::kOptOut));
  CHECK_FALSE(remembers_reads(tracks::kOn | tracks::kOptOut | tracks::kCaching));
}

TEST_CASE("clients that track stand with their thread and their prefixes", "[tracking]") {
  contract::Tracking tracking;
  contract::Client a(1, "a", "l", -1, false, 0, nullptr);
  contract::Client b(2, "b", "l", -1, false, 0, nullptr);
  b.thread_index = 3;
  tracking.enable(a, {.mode = contract::tracks::kBroadcast, .prefixes = {"x", "y"}});
  tracking.enable(b, {.mode = contract::tracks::kBroadcast, .prefixes = {"x"}});
  tracking.enable(b, {.mode = contract::tracks::kBroadcast, .prefixes = {"yy"}});
  CHECK(tracking.clients() == 2);
  CHECK(tracking.prefixes() == 3);
  CHECK(tracking.threads() == types::ThreadSet(9));
  CHECK(tracking.find(3, 2) == &b);
  CHECK(tracking.find(0, 2) == nullptr);
  const auto prefixes = [&](int thread, std::string_view key) {
    std::set<std::string> names;
    tracking.for_prefixes_of(thread, key, [&](const std::string& name) { names.insert(name); });
    return names;
  };
  CHECK(prefixes(0, "xyz") == std::set<std::string>{"x"});
  CHECK(prefixes(0, "yyy") == std::set<std::string>{"y"});
  CHECK(prefixes(3, "yyy") == std::set<std::string>{"yy"});
  tracking.close(a);
  tracking.enable(a, {});
  CHECK(a.tracking == 0);
  CHECK(prefixes(0, "xyz").empty());
  CHECK(tracking.clients() == 1);
  tracking.disable(b);
  tracking.disable(b);
  CHECK_FALSE(tracking.any());
  CHECK(tracking.prefixes() == 0);
}

}  // namespace
}  // namespace ingot::exec
