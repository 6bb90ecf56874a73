// What several sets or sorted sets give together: their union, intersection or difference, however
// large they are. Nothing is gathered: the members come one by one, in the order of a member table,
// and a walk may be taken up again where an earlier one ended.
//
// Reads only; failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "src/types/keyspace.h"

namespace ingot::types {

// One of the sources: a set, whose members have the score 1, a sorted set, or nothing.
struct CombinedSource {
  std::optional<Record> record;
  double weight = 1;  // of its scores
};

class Combination {
 public:
  enum class Operation : uint8_t { kUnion, kIntersection, kDifference };
  enum class Aggregate : uint8_t { kSum, kMin, kMax };

  // Not empty; a difference takes the others from the first.
  Combination(storage::Reader& data, Operation operation, std::vector<CombinedSource> sources,
              Aggregate aggregate = Aggregate::kSum);

  uint64_t members() const { return members_; }  // of all sources together
  // Whether all that can come are members of intsets.
  bool may_be_intset() const;

  // Calls `each` with the members of the result from `from` on, an element of a member table or
  // "", until it returns false.
  using Each = std::function<bool(std::string_view element, double score)>;
  void walk(storage::Reader& data, std::string_view from, const Each& each) const;

 private:
  void unite(storage::Reader& data, std::string_view from, const Each& each) const;
  void intersect(storage::Reader& data, std::string_view from, const Each& each) const;
  void subtract(storage::Reader& data, std::string_view from, const Each& each) const;
  double combine(double a, double b) const;

  const Operation operation_;
  const Aggregate aggregate_;
  std::vector<CombinedSource> sources_;  // those that are there; the smallest first, but for a
                                         // difference as they were given
  bool some_missing_ = false;
  bool first_missing_ = false;
  uint64_t members_ = 0;
};

}  // namespace ingot::types
