// The bytes inside a sorted set, for sorted_set.cc and sorted_set_writer.cc. Pure.
#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/packed.h"
#include "src/types/sorted_set_value.h"
#include "storage/status.h"

namespace ingot::types {

inline constexpr size_t kScoreBytes = 8;

inline storage::Status corrupt_sorted_set() {
  return {storage::Status::Code::kCorruption, "unreadable record of a sorted set"};
}

inline uint64_t ordered_bits(double score) {
  const uint64_t bits = std::bit_cast<uint64_t>(score == 0 ? 0.0 : score);
  return (bits >> 63) != 0 ? ~bits : bits | 1ull << 63;
}

inline std::string bits_item(uint64_t ordered) {
  std::string item;
  storage::append_be64(&item, ordered);
  return item;
}

inline std::string item_of(double score, std::string_view member) {
  std::string item = bits_item(ordered_bits(score));
  item.append(member);
  return item;
}

// Of an item in the order; a mark tells -0 from 0, which stand in the same place.
inline double score_of(std::string_view item, bool marked) {
  const uint64_t ordered = storage::read_be64(item);
  const bool negative = (ordered >> 63) == 0;
  const double score = std::bit_cast<double>(negative ? ~ordered : ordered & ~(1ull << 63));
  return marked ? -score : score;
}
inline bool needs_mark(double score) {
  return score == 0 && std::bit_cast<uint64_t>(score) != 0;
}

inline std::string score_record(double score) {
  std::string record(1, storage::kPlainElement);
  storage::append_le64(&record, std::bit_cast<uint64_t>(score));
  return record;
}

inline bool before(const ScoredMember& a, double score, std::string_view member) {
  return a.score != score ? a.score < score : a.member < member;
}

inline size_t packed_member_bytes(std::string_view member) {
  return packed_bytes(kScoreBytes + member.size());
}

inline std::string pack_members(const std::vector<ScoredMember>& members) {
  std::string packed;
  std::string item;
  for (const ScoredMember& each : members) {
    item.clear();
    storage::append_le64(&item, std::bit_cast<uint64_t>(each.score));
    item.append(each.member);
    append_packed(&packed, item);
  }
  return packed;
}

[[nodiscard]] inline bool unpack_members(std::string_view packed,
                                         std::vector<ScoredMember>* members) {
  PackedReader reader(packed);
  std::string_view item;
  while (reader.next(&item)) {
    if (item.size() < kScoreBytes) return false;
    members->push_back({.score = std::bit_cast<double>(storage::read_le64(item)),
                        .member = std::string(item.substr(kScoreBytes))});
  }
  return !reader.broken();
}

}  // namespace ingot::types
