// Ranks that the writer finds in memory while its group changes the order.
#include "src/types/pending_counts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "tests/src/one_sequence.h"

namespace ingot::types {
namespace {

TEST_CASE("ranks that are known stay right in the middle of a group", "[counted_order]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Sequence sequence(each_engine());
  std::set<std::string> items;
  const size_t most = sequence.steps(40'000);
  while (items.size() < most) items.insert(numbered(random()));
  sequence.build(items);
  sequence.commit();
  const auto some = [&] {
    return *std::next(sequence.model().begin(),
                      static_cast<long>(random() % sequence.model().size()));
  };
  const auto change = [&](size_t times) {
    for (size_t i = 0; i < times; ++i) {
      sequence.add(numbered(random()));
      sequence.remove(some());
      sequence.move(some(), numbered(random()));
      // Leaves come and go beside each other.
      const std::string near = some();
      for (uint64_t each = random() % 12; each > 0; --each) {
        sequence.add(near + static_cast<char>(each));
      }
      const auto from = sequence.model().lower_bound(some());
      const auto left = std::distance(from, sequence.model().end());
      const auto to = std::next(from, std::min<long>(left - 1, static_cast<long>(random() % 30)));
      sequence.remove_between(std::string(*from), std::string(*to));
    }
  };
  for (int group = 0; group < 12; ++group) {
    sequence.check_pending(random);
    for (int unit = 0; unit < 4; ++unit) {
      change(random() % 4 + 1);
      sequence.check_pending(random);
      sequence.undone([&] {
        change(random() % 4 + 1);
        sequence.check_pending(random);
      });
      sequence.check_pending(random);
    }
    sequence.commit();
  }
  CHECK(sequence.pending_found() > 12 * 100);
}

}  // namespace
}  // namespace ingot::types
