// Two ways to the next member: sorted in memory for a small form, a seek for a large one.
#include "src/types/member_cursor.h"

#include <algorithm>

#include "src/types/member_table.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_value.h"

namespace ingot::types {

using storage::CollectionId;
using storage::Space;

MemberCursor::MemberCursor(storage::Reader& data, const Record& record)
    : data_(data), record_(record) {
  if (record.collection()) {
    const CollectionId id = record.collection()->id;
    at_ = data.cursor(Space::kData, storage::collection_begin(id), storage::collection_end(id));
    return;
  }
  if (record.type() == storage::ValueType::kSet) {
    SetReader(data, record).walk([&](std::string_view member) {
      small_.emplace_back(member_element(member), 1);
      return true;
    });
  } else {
    SortedSetReader(data, record).walk([&](std::string_view member, double score) {
      small_.emplace_back(member_element(member), score);
      return true;
    });
  }
  std::ranges::sort(small_);
}

void MemberCursor::seek(std::string_view element) {
  if (is_large()) {
    at_->seek(storage::collection_begin(record_.collection()->id).append(element));
    return data_.check(*at_);
  }
  const auto found = std::ranges::lower_bound(
      small_, element, {}, [](const auto& each) -> std::string_view { return each.first; });
  next_ = static_cast<size_t>(found - small_.begin());
}

void MemberCursor::next() {
  if (!is_large()) {
    ++next_;
    return;
  }
  at_->next();
  data_.check(*at_);
}

std::string_view MemberCursor::element() const {
  return is_large() ? at_->key().substr(sizeof(CollectionId)) : small_[next_].first;
}

double MemberCursor::score() const {
  if (!is_large()) return small_[next_].second;
  double score = 1;
  if (record_.type() == storage::ValueType::kSortedSet && !decode_score(at_->value(), &score)) {
    data_.latch_error({storage::Status::Code::kCorruption, "unreadable member of a sorted set"});
  }
  return score;
}

}  // namespace ingot::types
