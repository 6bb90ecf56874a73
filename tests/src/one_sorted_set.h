// A sorted set of its own on one of the engines, for the tests of sorted sets.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/types/collection.h"
#include "src/types/packed.h"
#include "src/types/sorted_set_value.h"
#include "tests/src/typed_store.h"

namespace ingot::types {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kTiny = std::numeric_limits<double>::denorm_min();

// Members in order; scores as they are printed, so that -0 is not 0.
using Scored = std::vector<std::pair<std::string, std::string>>;

class OneSortedSet : public TypedStore {
 public:
  OneSortedSet(const std::string& engine, const SortedSetLimits& limits)
      : TypedStore(engine), limits_(limits) {}
  // With the other limits far away.
  OneSortedSet(const std::string& engine, uint64_t inline_max)
      : OneSortedSet(engine, {.inline_max_bytes = inline_max,
                              .listpack_entries_max = 10'000,
                              .listpack_value_max = 10'000}) {}

  template <typename Change>
  void change(const Change& change) {
    TypedStore::change<SortedSetWriter>(limits_, change);
  }
  void put(std::string_view member, double score) {
    change([&](SortedSetWriter& set) { set.put(member, score); });
  }
  bool remove(std::string_view member) {
    bool removed = false;
    change([&](SortedSetWriter& set) { removed = set.remove(member); });
    return removed;
  }
  template <typename Ask>
  auto ask(const Ask& ask) {
    const Record found = record();
    SortedSetReader reader(overlay(), found);
    const auto answer = ask(reader);
    REQUIRE_FALSE(overlay().failed());
    return answer;
  }
  Scored walked(const RankRange& ranks, bool reverse) {
    return ask([&](SortedSetReader& reader) {
      Scored members;
      reader.walk(ranks, reverse, [&](std::string_view member, double score) {
        members.emplace_back(member, score_text(score));
        return true;
      });
      return members;
    });
  }
  uint64_t size() {
    return ask([](SortedSetReader& reader) { return reader.size(); });
  }
  Scored all() { return exists() ? walked({.first = 0, .end = size()}, false) : Scored{}; }
  std::optional<double> score(std::string_view member) {
    return ask([&](SortedSetReader& reader) { return reader.score(member); });
  }
  std::optional<uint64_t> rank(std::string_view member) {
    return ask([&](SortedSetReader& reader) { return reader.rank(member); });
  }
  std::string_view encoding() { return encoding_name(record()); }
  // The member before which the record says that none stands.
  std::string lowest_noted() {
    const Record found = record();
    PackedReader reader(found.payload());
    std::string_view item;
    REQUIRE(reader.next(&item));
    REQUIRE(item.size() >= sizeof(double));
    CHECK(reader.position() == found.payload().size());
    return std::string(item.substr(sizeof(double)));
  }
  const SortedSetLimits& limits() const { return limits_; }

 private:
  const SortedSetLimits limits_;
};

// Enough for several leaves of the order; scores rise in steps of ten members.
inline std::string numbered(int number) {
  const std::string digits = std::to_string(number);
  return "m" + std::string(4 - digits.size(), '0') + digits;
}
inline double numbered_score(int number) {
  return number / 10;
}
inline void put_numbered(OneSortedSet& set, int count) {
  set.change([&](SortedSetWriter& writer) {
    for (int i = 0; i < count; ++i) writer.put(numbered(i), numbered_score(i));
  });
}

}  // namespace ingot::types
