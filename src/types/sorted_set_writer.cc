// Changing scores and removing members, in the record or in the table and the order together.
#include <algorithm>

#include "src/types/collection.h"
#include "src/types/member_table.h"
#include "src/types/sorted_set_bytes.h"
#include "src/types/sorted_set_value.h"
#include "storage/check.h"

namespace ingot::types {

using storage::Metadata;
using storage::Space;

SortedSetWriter::SortedSetWriter(KeyWriter& keys, int db, std::string_view key,
                                 const Record* before, const SortedSetLimits& limits)
    : keys_(keys), db_(db), key_(key), before_(before), limits_(limits) {
  after_.type = storage::ValueType::kSortedSet;
  if (before == nullptr) return;
  after_ = before->metadata();
  collection_ = after_.collection;
  bool readable = true;
  if (collection_) {
    PackedReader reader(before->payload());
    std::string_view low;
    readable = reader.next(&low);
    low_ = low;
    keys.overlay().note_order(collection_->id, collection_->revision);
  } else {
    readable = unpack_members(before->payload(), &small_);
    small_bytes_ = before->payload().size();
  }
  if (!readable) keys.data().latch_error(corrupt_sorted_set());
}

CountedOrderWriter& SortedSetWriter::order() {
  if (!order_) order_.emplace(keys_.overlay(), keys_.orders(), id(), low_);
  order_->set_low(low_);
  return *order_;
}

std::optional<double> SortedSetWriter::score_of_large(std::string_view member) {
  std::string stored;
  double score = 0;
  if (!MemberTable(keys_.data(), id()).get(member, &stored)) return std::nullopt;
  if (decode_score(stored, &score)) return score;
  keys_.data().latch_error(corrupt_sorted_set());
  return std::nullopt;
}

std::optional<double> SortedSetWriter::score(std::string_view member) {
  if (collection_) return score_of_large(member);
  const auto found = std::ranges::find(small_, member, &ScoredMember::member);
  return found == small_.end() ? std::nullopt : std::optional(found->score);
}

void SortedSetWriter::put(std::string_view member, double score, std::optional<double> old) {
  changed_ = true;
  if (!old && !stays_packed(limits_, size() + 1, member.size())) after_.limit_passed = true;
  // Redis' packed form has whole numbers, and so no -0.
  if (!after_.limit_passed && score == 0) score = 0;
  if (collection_) return put_large(member, score, old);
  if (old) {
    small_.erase(std::ranges::find(small_, member, &ScoredMember::member));
  } else {
    small_bytes_ += packed_member_bytes(member);
  }
  const auto at = std::ranges::partition_point(
      small_, [&](const ScoredMember& each) { return before(each, score, member); });
  small_.insert(at, {.score = score, .member = std::string(member)});
  if (small_bytes_ > limits_.inline_max_bytes) make_large();
}

void SortedSetWriter::put_large(std::string_view member, double score, std::optional<double> old) {
  const std::string item = item_of(score, member);
  put_member(keys_.overlay(), id(), member, score_record(score));
  if (item < low_) low_ = item;
  if (old) {
    const std::string old_item = item_of(*old, member);
    order().move(old_item, item, needs_mark(score));
    lowest_removed_ = lowest_removed_ || old_item == low_;
  } else {
    order().add(item, needs_mark(score));
    ++collection_->count;
  }
}

void SortedSetWriter::erase_large(std::string_view member, double score) {
  const std::string item = item_of(score, member);
  remove_member(keys_.overlay(), id(), member);
  auto behind = order().remove(item);
  --collection_->count;
  if (item != low_) return;
  if (behind) low_ = std::move(*behind);
  lowest_removed_ = lowest_removed_ || !behind;
}

void SortedSetWriter::make_large() {
  collection_ = Metadata::Collection{.id = keys_.new_collection()};
  low_ = item_of(small_.front().score, small_.front().member);
  for (const ScoredMember& each : small_) put_large(each.member, each.score, std::nullopt);
  small_.clear();
}

std::optional<ScoredMember> SortedSetWriter::peek(End end) {
  if (!collection_) return std::nullopt;
  const auto found = end == End::kLowest ? order().lowest() : order().highest();
  if (!found || found->item.size() < kScoreBytes) return std::nullopt;
  return ScoredMember{.score = score_of(found->item, found->marked),
                      .member = found->item.substr(kScoreBytes)};
}

bool SortedSetWriter::remove(std::string_view member) {
  if (collection_) {
    const auto old = score_of_large(member);
    if (!old) return false;
    erase_large(member, *old);
  } else {
    const auto found = std::ranges::find(small_, member, &ScoredMember::member);
    if (found == small_.end()) return false;
    small_bytes_ -= packed_member_bytes(member);
    small_.erase(found);
  }
  changed_ = true;
  return true;
}

void SortedSetWriter::remove(const ScoredMember& read) {
  if (!collection_) {
    const bool found = remove(read.member);
    INGOT_CHECK(found);
    return;
  }
  erase_large(read.member, read.score);
  changed_ = true;
}

std::vector<ScoredMember> SortedSetWriter::last(uint64_t count, uint64_t bytes_max) {
  std::vector<ScoredMember> found;
  uint64_t bytes = 0;
  order().walk_from_last([&](std::string_view item, bool marked) {
    if (item.size() < kScoreBytes) return false;
    found.push_back(
        {.score = score_of(item, marked), .member = std::string(item.substr(kScoreBytes))});
    bytes += found.back().member.size();
    return found.size() < count && bytes <= bytes_max;
  });
  if (found.size() < count && bytes <= bytes_max && !keys_.data().failed()) {
    keys_.data().latch_error(corrupt_sorted_set());
  }
  return found;
}

void SortedSetWriter::remove(std::span<const ScoredMember> neighbours) {
  if (neighbours.size() < 2 || !collection_) {
    for (const ScoredMember& each : neighbours) remove(each);
    return;
  }
  const auto [low, high] =
      std::ranges::minmax({item_of(neighbours.front().score, neighbours.front().member),
                           item_of(neighbours.back().score, neighbours.back().member)});
  remove_items(low, high);
}

void SortedSetWriter::remove_items(std::string_view first, std::string_view last) {
  changed_ = true;
  order().remove_between(first, last, [&](std::string_view item) {
    remove_member(keys_.overlay(), id(), item.substr(std::min(kScoreBytes, item.size())));
    --collection_->count;
  });
  lowest_removed_ = lowest_removed_ || first <= low_;
}

void SortedSetWriter::remove(const RankRange& ranks) {
  if (ranks.size() == 0) return;
  changed_ = true;
  if (!collection_) {
    for (uint64_t i = ranks.first; i < ranks.end; ++i) {
      small_bytes_ -= packed_member_bytes(small_[i].member);
    }
    small_.erase(small_.begin() + static_cast<ptrdiff_t>(ranks.first),
                 small_.begin() + static_cast<ptrdiff_t>(ranks.end));
    return;
  }
  const auto first = order().at(ranks.first);
  const auto last = ranks.size() == 1 ? first : order().at(ranks.end - 1);
  if (!first || !last) {
    if (!keys_.data().failed()) keys_.data().latch_error(corrupt_sorted_set());
    return;
  }
  remove_items(*first, *last);
  lowest_removed_ = lowest_removed_ || ranks.first == 0;
}

// The first member went: the next one is the first from now on.
void SortedSetWriter::raise_low() {
  if (auto first = order().at(0)) low_ = std::move(*first);
}

bool SortedSetWriter::finish() {
  if (!changed_) return size() != 0;
  if (size() == 0) {
    if (before_ != nullptr) keys_.remove(db_, key_, *before_);
    return false;
  }
  std::string payload;
  if (collection_) {
    if (lowest_removed_) raise_low();
    append_packed(&payload, low_);
  } else {
    payload = pack_members(small_);
  }
  after_.collection = collection_;
  after_.payload = payload;
  revise(&after_);
  keys_.store(db_, key_, before_, after_);
  changed_ = lowest_removed_ = false;
  return true;
}

}  // namespace ingot::types
