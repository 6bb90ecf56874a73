// What a sorted set is on disk. A small one stands in its key's record: its members in order, each
// packed (packed.h) as score (IEEE double, u64le of its bits) | member. One that would pass the
// limit becomes large for good: its members are those of a MemberTable with the value
//
//   0 | score (u64le)
//
// and they stand a second time in a CountedOrder, by items
//
//   score in order (u64be) | member
//
// which finds ranks without reading from the start. "In order" turns a score into a number that
// sorts as it does: all bits of a negative one are inverted, the sign bit of another; -0 counts as
// 0, and is marked. Metadata::payload notes, packed, an item before which none stands: pops from
// the low end walk over nothing that was removed.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/counted_order.h"
#include "src/types/keyspace.h"
#include "src/types/member_table.h"
#include "storage/codec.h"

namespace ingot::types {

struct ScoredMember {
  double score = 0;
  std::string member;
};

// A bound of a range by score or by member.
struct ScoreBound {
  double score = 0;
  bool exclusive = false;
};
struct LexBound {
  enum class Kind : uint8_t { kFirst, kLast, kMember } kind = Kind::kMember;  // "-", "+", [m or (m
  std::string_view member;
  bool exclusive = false;
};

// Ranks [first, end).
struct RankRange {
  uint64_t first = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - first; }
};

// The score in a record of the member table. False when it is none.
[[nodiscard]] bool decode_score(std::string_view stored, double* score);
// As Redis prints a score: 17 digits at most, "inf", "-inf".
std::string score_text(double score);
// As Redis has it in a listpack: integers with all their digits, which ZSCAN shows.
std::string packed_score_text(double score);
class SortedSetReader {
 public:
  // Requires a sorted set or no record; both must outlive this.
  SortedSetReader(storage::Reader& data, const Record& record);

  bool is_large() const { return record_.collection().has_value(); }
  uint64_t size() const;
  std::optional<double> score(std::string_view member);
  std::optional<uint64_t> rank(std::string_view member);

  // What lies between two bounds; empty when they are the wrong way round. By members only sets
  // whose scores are all the same have an order.
  RankRange between(const ScoreBound& min, const ScoreBound& max);
  RankRange between(const LexBound& min, const LexBound& max);

  // Calls `each` for these ranks, from the last one on when `reverse`, until it returns false.
  using Each = std::function<bool(std::string_view member, double score)>;
  void walk(const RankRange& ranks, bool reverse, const Each& each);
  void walk(const Each& each) { walk({.first = 0, .end = size()}, false, each); }
  // For those between two bounds, in order: finds no ranks, which cost more than few members do.
  void walk(const ScoreBound& min, const ScoreBound& max, const Each& each);
  // Of a large one, and of ranks that are there: the records of the order space, for read_order().
  CountedOrder::Leaves leaves(const RankRange& ranks);
  // One member, each as likely as any other. False only after a failure.
  bool random(std::mt19937_64& random, ScoredMember* member);

 private:
  storage::CollectionId id() const { return record_.collection()->id; }
  CountedOrder order();

  storage::Reader& data_;
  const Record& record_;
  std::vector<ScoredMember> small_;
  std::string low_;                   // no item stands before it
  std::optional<MemberTable> table_;  // random() keeps it for its next call
};

// The members in a record of the order space, of those from `first` to `last`; false when it is
// none.
bool read_order(std::string_view record, std::string_view first, std::string_view last,
                const SortedSetReader::Each& each);

// When a sorted set takes its other forms: in Ingot, and as OBJECT ENCODING tells.
struct SortedSetLimits {
  uint64_t inline_max_bytes;
  uint64_t listpack_entries_max;
  uint64_t listpack_value_max;
};

// Whether so many members, the longest of which has so many bytes, have Redis' packed form.
inline bool stays_packed(const SortedSetLimits& limits, uint64_t members, size_t longest) {
  return members <= limits.listpack_entries_max && longest <= limits.listpack_value_max;
}

// Changes one sorted set; finish() makes the changes its key's record.
class SortedSetWriter {
 public:
  // `before` is what find() gave, or null: then the set begins empty. It and `key` must outlive
  // this.
  SortedSetWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
                  const SortedSetLimits& limits);

  uint64_t size() const { return collection_ ? collection_->count : small_.size(); }
  std::optional<double> score(std::string_view member);
  // Adds the member or gives it another score, which is not NaN.
  void put(std::string_view member, double score) { put(member, score, this->score(member)); }
  // The same when score() has just told what it had.
  void put(std::string_view member, double score, std::optional<double> old);
  // The first or the last member of a large set, where that costs no walk.
  enum class End : uint8_t { kLowest, kHighest };
  std::optional<ScoredMember> peek(End end);
  bool remove(std::string_view member);   // true when it was there
  void remove(const ScoredMember& read);  // one that has just been read: it is not looked up
  // The last members of a large set, so many at most, from the last one on; none behind the one
  // with which they have more than `bytes_max` bytes.
  std::vector<ScoredMember> last(uint64_t count, uint64_t bytes_max);
  // Members that stand next to each other and have just been read; cheaper than one by one.
  void remove(std::span<const ScoredMember> neighbours);
  // The same for the members of these ranks.
  void remove(const RankRange& ranks);
  // Stores what has changed. False when no member is left, and so no key.
  bool finish();

 private:
  storage::CollectionId id() const { return collection_->id; }
  CountedOrderWriter& order();
  std::optional<double> score_of_large(std::string_view member);
  void put_large(std::string_view member, double score, std::optional<double> old);
  void erase_large(std::string_view member, double score);
  void remove_items(std::string_view first, std::string_view last);
  void make_large();
  void raise_low();

  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const Record* const before_;
  const SortedSetLimits limits_;
  storage::Metadata after_;
  std::vector<ScoredMember> small_;  // in order
  size_t small_bytes_ = 0;
  std::optional<storage::Metadata::Collection> collection_;
  std::string low_;
  std::optional<CountedOrderWriter> order_;
  bool lowest_removed_ = false;
  bool changed_ = false;
};

}  // namespace ingot::types
