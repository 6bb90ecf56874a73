// The merging walks: a union of all cursors, or one cursor with the other keys looked at beside it.
#include "src/types/combination.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <span>
#include <utility>

#include "src/types/member_cursor.h"
#include "src/types/member_table.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_value.h"

namespace ingot::types {

using storage::ValueType;

namespace {

uint64_t size_of(storage::Reader& data, const Record& record) {
  if (record.type() == ValueType::kSet) return SetReader(data, record).size();
  return SortedSetReader(data, record).size();
}

double weighted(double weight, double score) {
  const double value = weight * score;
  return std::isnan(value) ? 0 : value;  // infinity times zero
}

// Tells which elements one source has. Asked for in the order of a member table: a large source
// that is not much larger than the one that is walked is walked beside it, as a step takes a
// fraction of a look-up.
class Beside {
 public:
  Beside(storage::Reader& data, const CombinedSource& source, uint64_t walked)
      : weight_(source.weight) {
    const Record& record = *source.record;
    if (record.collection() && size_of(data, record) / kLargerMax < walked) {
      at_.emplace(data, record);
    } else if (record.type() == ValueType::kSet) {
      set_.emplace(data, record);
    } else {
      sorted_set_.emplace(data, record);
    }
  }

  // Infinity times zero is no number here, as in Redis: combine() sees to that.
  std::optional<double> score(std::string_view element) {
    std::optional<double> score;
    if (at_) {
      if (go_to(element)) score = at_->score();
    } else if (sorted_set_) {
      score = sorted_set_->score(member_of_element(element));
    } else if (set_->contains(member_of_element(element))) {
      score = 1;
    }
    return score ? std::optional(weight_ * *score) : std::nullopt;
  }

 private:
  static constexpr uint64_t kLargerMax = 8;  // times as many elements
  static constexpr int kStepsMax = 16;       // then a seek is less

  bool go_to(std::string_view element) {
    for (int step = 0; is_begun_ && step < kStepsMax; ++step) {
      if (!at_->valid() || at_->element() >= element) break;
      at_->next();
    }
    if (!is_begun_ || (at_->valid() && at_->element() < element)) at_->seek(element);
    is_begun_ = true;
    return at_->valid() && at_->element() == element;
  }

  const double weight_;
  std::optional<MemberCursor> at_;  // one of these three
  std::optional<SetReader> set_;
  std::optional<SortedSetReader> sorted_set_;
  bool is_begun_ = false;
};

// All but the first, which is walked.
std::deque<Beside> beside_first(storage::Reader& data, std::span<const CombinedSource> sources) {
  const uint64_t walked = size_of(data, *sources.front().record);
  std::deque<Beside> others;
  for (const CombinedSource& source : sources.subspan(1)) {
    others.emplace_back(data, source, walked);
  }
  return others;
}

}  // namespace

Combination::Combination(storage::Reader& data, Operation operation,
                         std::vector<CombinedSource> sources, Aggregate aggregate)
    : operation_(operation), aggregate_(aggregate), first_missing_(!sources.front().record) {
  std::vector<std::pair<uint64_t, CombinedSource>> present;
  for (CombinedSource& source : sources) {
    some_missing_ = some_missing_ || !source.record;
    if (!source.record) continue;
    const uint64_t size = size_of(data, *source.record);
    members_ += size;
    present.emplace_back(size, std::move(source));
  }
  if (operation != Operation::kDifference) {
    std::ranges::stable_sort(present, {}, [](const auto& each) { return each.first; });
  }
  for (auto& [size, source] : present) sources_.push_back(std::move(source));
}

bool Combination::may_be_intset() const {
  if (sources_.empty()) return true;
  const auto is_intset = [](const CombinedSource& source) {
    return !source.record->limit_passed();
  };
  return operation_ == Operation::kUnion ? std::ranges::all_of(sources_, is_intset)
                                         : is_intset(sources_.front());
}

void Combination::walk(storage::Reader& data, std::string_view from, const Each& each) const {
  if (sources_.empty()) return;
  switch (operation_) {
    case Operation::kUnion:
      return unite(data, from, each);
    case Operation::kIntersection:
      if (!some_missing_) intersect(data, from, each);
      return;
    case Operation::kDifference:
      if (!first_missing_) subtract(data, from, each);
      return;
  }
}

// A merge: `waiting` is a heap with the least element on top, of equal ones that of the smallest
// source, because the order in which scores are added up shows in their last bits.
void Combination::unite(storage::Reader& data, std::string_view from, const Each& each) const {
  std::deque<MemberCursor> cursors;
  std::vector<size_t> waiting;
  const auto comes_later = [&](size_t a, size_t b) {
    const int order = cursors[a].element().compare(cursors[b].element());
    return order != 0 ? order > 0 : a > b;
  };
  for (const CombinedSource& source : sources_) {
    MemberCursor& cursor = cursors.emplace_back(data, *source.record);
    cursor.seek(from);
    if (cursor.valid()) waiting.push_back(cursors.size() - 1);
  }
  std::ranges::make_heap(waiting, comes_later);
  std::string element;
  while (!waiting.empty() && !data.failed()) {
    element = cursors[waiting.front()].element();
    std::optional<double> score;
    while (!waiting.empty() && cursors[waiting.front()].element() == element) {
      std::ranges::pop_heap(waiting, comes_later);
      const size_t least = waiting.back();
      MemberCursor& cursor = cursors[least];
      const double its = weighted(sources_[least].weight, cursor.score());
      score = score ? combine(*score, its) : its;
      cursor.next();
      if (cursor.valid()) {
        std::ranges::push_heap(waiting, comes_later);
      } else {
        waiting.pop_back();
      }
    }
    if (!each(element, *score)) return;
  }
}

// A walk over the smallest.
void Combination::intersect(storage::Reader& data, std::string_view from, const Each& each) const {
  std::deque<Beside> others = beside_first(data, sources_);
  MemberCursor at(data, *sources_.front().record);
  for (at.seek(from); at.valid() && !data.failed(); at.next()) {
    double score = weighted(sources_.front().weight, at.score());
    const bool everywhere = std::ranges::all_of(others, [&](Beside& other) {
      const std::optional<double> its = other.score(at.element());
      if (its) score = combine(score, *its);
      return its.has_value();
    });
    if (everywhere && !each(at.element(), score)) return;
  }
}

void Combination::subtract(storage::Reader& data, std::string_view from, const Each& each) const {
  std::deque<Beside> others = beside_first(data, sources_);
  MemberCursor at(data, *sources_.front().record);
  for (at.seek(from); at.valid() && !data.failed(); at.next()) {
    const bool elsewhere = std::ranges::any_of(
        others, [&](Beside& other) { return other.score(at.element()).has_value(); });
    if (!elsewhere && !each(at.element(), at.score())) return;
  }
}

double Combination::combine(double a, double b) const {
  switch (aggregate_) {
    case Aggregate::kSum:
      return std::isnan(a + b) ? 0 : a + b;  // infinity minus infinity
    case Aggregate::kMin:
      return std::min(a, b);
    case Aggregate::kMax:
      return std::max(a, b);
  }
  return a;
}

}  // namespace ingot::types
