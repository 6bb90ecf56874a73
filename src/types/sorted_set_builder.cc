// Collecting members in memory while they are few, then with the leaves of their order.
#include "src/types/sorted_set_builder.h"

#include <utility>

#include "src/types/member_table.h"
#include "src/types/sorted_set_bytes.h"

namespace ingot::types {

void SortedSetBuilder::expect(uint64_t members, size_t longest) {
  if (!stays_packed(limits_, members, longest)) limit_passed_ = true;
}

void SortedSetBuilder::put(std::string_view member, double score) {
  put_(storage::Space::kData, member_element(member), score_record(score));
  order_->add(item_of(score, member), needs_mark(score));
}

void SortedSetBuilder::add(std::string_view member, double score) {
  expect(++size_, member.size());
  // Redis' packed form has whole numbers, and so no -0.
  if (!limit_passed_ && score == 0) score = 0;
  if (order_) return put(member, score);
  small_.push_back({.score = score, .member = std::string(member)});
  small_bytes_ += packed_member_bytes(member);
  if (small_bytes_ <= limits_.inline_max_bytes) return;
  order_.emplace(put_);
  low_ = item_of(small_.front().score, small_.front().member);
  for (const ScoredMember& each : small_) put(each.member, each.score);
  small_ = {};
}

BuiltValue updated_sorted_set(storage::Reader& data, const Record& record,
                              const SortedSetLimits& limits, bool limit_passed,
                              const ScoreUpdates& updates, const PutElement& put) {
  SortedSetBuilder builder(limits, put);
  if (limit_passed) builder.expect(UINT64_MAX, 0);
  size_t next = 0;
  const auto add_next = [&] {
    const auto [score, member] = updates.at(next++);
    builder.add(member, score);
  };
  SortedSetReader(data, record).walk([&](std::string_view member, double score) {
    while (next < updates.count && updates.at(next) < std::pair(score, member)) add_next();
    if (!updates.has(member)) builder.add(member, score);
    return !data.failed();
  });
  while (next < updates.count) add_next();
  return builder.finish();
}

BuiltValue rest_of_sorted_set(storage::Reader& data, const Record& record,
                              const SortedSetLimits& limits, const PutElement& put,
                              const ScoredGoes& goes) {
  SortedSetBuilder rest(limits, put);
  if (record.limit_passed()) rest.expect(UINT64_MAX, 0);  // for good
  uint64_t rank = 0;
  uint64_t gone = 0;
  SortedSetReader(data, record).walk([&](std::string_view member, double score) {
    goes(rank++, member, score) ? void(++gone) : rest.add(member, score);
    return !data.failed();
  });
  BuiltValue built = rest.finish();
  built.changes = gone;
  return built;
}

BuiltValue SortedSetBuilder::finish() {
  BuiltValue set{
      .metadata = {.type = storage::ValueType::kSortedSet, .limit_passed = limit_passed_},
      .payload = {},
      .size = size_};
  if (order_) {
    order_->finish();
    append_packed(&set.payload, low_);
    set.metadata.collection = storage::Metadata::Collection{.count = size_, .revision = 1};
  } else {
    set.payload = pack_members(small_);
  }
  return set;
}

}  // namespace ingot::types
