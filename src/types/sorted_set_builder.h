// Makes a sorted set of its members, given in order.
//
// One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/sorted_set_value.h"

namespace ingot::types {

class SortedSetBuilder {
 public:
  SortedSetBuilder(const SortedSetLimits& limits, PutElement put)
      : limits_(limits), put_(std::move(put)) {}

  // What is known of the members before the first is added: how many, the longest's bytes.
  void expect(uint64_t members, size_t longest);
  void add(std::string_view member, double score);  // each once, in order
  BuiltValue finish();

 private:
  void put(std::string_view member, double score);

  const SortedSetLimits limits_;
  const PutElement put_;
  std::vector<ScoredMember> small_;
  size_t small_bytes_ = 0;
  std::string low_;  // the first item of a large one
  std::optional<CountedOrderBuilder> order_;
  uint64_t size_ = 0;
  bool limit_passed_ = false;
};

// Members that come, or have another score: in order, each once.
struct ScoreUpdates {
  size_t count;
  std::function<std::pair<double, std::string_view>(size_t index)> at;
  std::function<bool(std::string_view member)> has;
};
// The sorted set of a record, which may be that of no key, with these; `limit_passed` for good.
BuiltValue updated_sorted_set(storage::Reader& data, const Record& record,
                              const SortedSetLimits& limits, bool limit_passed,
                              const ScoreUpdates& updates, const PutElement& put);

// What is left of a large sorted set without the members that go, counted in `changes`.
using ScoredGoes = std::function<bool(uint64_t rank, std::string_view member, double score)>;
BuiltValue rest_of_sorted_set(storage::Reader& data, const Record& record,
                              const SortedSetLimits& limits, const PutElement& put,
                              const ScoredGoes& goes);

}  // namespace ingot::types
