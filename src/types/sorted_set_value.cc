// Reading sorted sets: scores, ranks, ranges and random members.
#include "src/types/sorted_set_value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/types/member_table.h"
#include "src/types/sorted_set_bytes.h"

namespace ingot::types {

using storage::Space;

namespace {

// No item between the bounds stands before the one, or at or behind the other.
std::string first_item(const ScoreBound& min) {
  return bits_item(ordered_bits(min.score) + (min.exclusive ? 1 : 0));
}
std::string end_item(const ScoreBound& max) {
  return bits_item(ordered_bits(max.score) + (max.exclusive ? 0 : 1));
}

}  // namespace

bool decode_score(std::string_view stored, double* score) {
  if (stored.size() != 1 + kScoreBytes) return false;
  *score = std::bit_cast<double>(storage::read_le64(stored.substr(1)));
  return true;
}

std::string score_text(double score) {
  char text[40];
  const int length = std::snprintf(text, sizeof(text), "%.17g", score);
  return {text, static_cast<size_t>(length)};
}

std::string packed_score_text(double score) {
  constexpr double kIntegerMax = 4611686018427387904.0;  // 2^62
  const bool is_integer = std::abs(score) <= kIntegerMax && std::trunc(score) == score;
  return is_integer ? std::to_string(static_cast<int64_t>(score)) : score_text(score);
}

bool read_order(std::string_view record, std::string_view first, std::string_view last,
                const SortedSetReader::Each& each) {
  bool whole = true;
  const bool readable = CountedOrder::read_leaf(record, [&](std::string_view item, bool marked) {
    whole = item.size() >= kScoreBytes;
    if (!whole) return false;
    if (item < first) return true;
    if (item > last) return false;
    return each(item.substr(kScoreBytes), score_of(item, marked));
  });
  return readable && whole;
}

SortedSetReader::SortedSetReader(storage::Reader& data, const Record& record)
    : data_(data), record_(record) {
  if (is_large()) {
    PackedReader reader(record.payload());
    std::string_view low;
    if (!reader.next(&low)) data.latch_error(corrupt_sorted_set());
    low_ = low;
  } else if (!unpack_members(record.payload(), &small_)) {
    data.latch_error(corrupt_sorted_set());
  }
}

CountedOrder SortedSetReader::order() {
  return {data_, id(), low_, record_.collection()->revision};
}

uint64_t SortedSetReader::size() const {
  return is_large() ? record_.collection()->count : small_.size();
}

std::optional<double> SortedSetReader::score(std::string_view member) {
  if (!is_large()) {
    const auto found = std::ranges::find(small_, member, &ScoredMember::member);
    return found == small_.end() ? std::nullopt : std::optional(found->score);
  }
  std::string stored;
  double score = 0;
  if (!MemberTable(data_, id()).get(member, &stored)) return std::nullopt;
  if (decode_score(stored, &score)) return score;
  data_.latch_error(corrupt_sorted_set());
  return std::nullopt;
}

std::optional<uint64_t> SortedSetReader::rank(std::string_view member) {
  if (!is_large()) {
    const auto found = std::ranges::find(small_, member, &ScoredMember::member);
    if (found == small_.end()) return std::nullopt;
    return static_cast<uint64_t>(found - small_.begin());
  }
  const std::optional<double> its = score(member);
  if (!its) return std::nullopt;
  return order().rank(item_of(*its, member));
}

RankRange SortedSetReader::between(const ScoreBound& min, const ScoreBound& max) {
  RankRange ranks;
  if (is_large()) {
    const bool from_first = std::isinf(min.score) && min.score < 0 && !min.exclusive;
    const bool to_last = std::isinf(max.score) && max.score > 0 && !max.exclusive;
    ranks.first = from_first ? 0 : order().rank(first_item(min));
    ranks.end = to_last ? size() : order().rank(end_item(max));
  } else {
    for (const ScoredMember& each : small_) {
      ranks.first += min.exclusive ? each.score <= min.score : each.score < min.score;
      ranks.end += max.exclusive ? each.score < max.score : each.score <= max.score;
    }
  }
  ranks.end = std::max(ranks.first, ranks.end);
  return ranks;
}

RankRange SortedSetReader::between(const LexBound& min, const LexBound& max) {
  // How many members stand before a bound; `behind` counts one that equals it as well.
  double its_score = 0;
  if (is_large()) {
    walk({.first = 0, .end = 1}, false, [&](std::string_view, double score) {
      its_score = score;
      return false;
    });
  }
  auto before_bound = [&](const LexBound& bound, bool behind) -> uint64_t {
    if (bound.kind == LexBound::Kind::kFirst) return 0;
    if (bound.kind == LexBound::Kind::kLast) return size();
    if (is_large()) {
      std::string item = item_of(its_score, bound.member);
      if (behind) item.push_back('\0');
      return order().rank(item);
    }
    uint64_t count = 0;
    for (const ScoredMember& each : small_) {
      count += behind ? each.member <= bound.member : each.member < bound.member;
    }
    return count;
  };
  RankRange ranks{.first = before_bound(min, min.exclusive),
                  .end = before_bound(max, !max.exclusive)};
  ranks.end = std::max(ranks.first, ranks.end);
  return ranks;
}

CountedOrder::Leaves SortedSetReader::leaves(const RankRange& ranks) {
  auto found = order().leaves(ranks.first, ranks.end);
  if (found) return std::move(*found);
  if (!data_.failed()) data_.latch_error(corrupt_sorted_set());
  return {};
}

void SortedSetReader::walk(const RankRange& ranks, bool reverse, const Each& each) {
  if (ranks.size() == 0) return;
  uint64_t left = ranks.size();
  if (!is_large()) {
    for (uint64_t i = 0; i < left; ++i) {
      const ScoredMember& at = small_[reverse ? ranks.end - 1 - i : ranks.first + i];
      if (!each(at.member, at.score)) return;
    }
    return;
  }
  const auto each_item = [&](std::string_view item, bool marked) {
    if (item.size() < kScoreBytes) {
      data_.latch_error(corrupt_sorted_set());
      return false;
    }
    if (!each(item.substr(kScoreBytes), score_of(item, marked))) left = 1;
    return --left != 0;
  };
  order().walk(reverse ? ranks.end - 1 : ranks.first, reverse, each_item);
  if (left != 0 && !data_.failed()) data_.latch_error(corrupt_sorted_set());
}

void SortedSetReader::walk(const ScoreBound& min, const ScoreBound& max, const Each& each) {
  if (!is_large()) return walk(between(min, max), false, each);
  order().walk_from(first_item(min), [&, end = end_item(max)](std::string_view item, bool marked) {
    if (item >= end) return false;
    if (item.size() >= kScoreBytes) return each(item.substr(kScoreBytes), score_of(item, marked));
    data_.latch_error(corrupt_sorted_set());
    return false;
  });
}

bool SortedSetReader::random(std::mt19937_64& random, ScoredMember* member) {
  if (!is_large()) {
    if (small_.empty()) return false;
    *member = small_[random() % small_.size()];
    return true;
  }
  std::string stored;
  if (!table_) table_.emplace(data_, id());
  if (!table_->random(random, size(), &member->member, &stored)) return false;
  if (decode_score(stored, &member->score)) return true;
  data_.latch_error(corrupt_sorted_set());
  return false;
}

}  // namespace ingot::types
