// Collecting members in memory while they are few, then in a member table, and linking it.
#include "src/types/set_builder.h"

#include <algorithm>

#include "src/types/member_table.h"
#include "src/types/packed.h"

namespace ingot::types {

void SetBuilder::put(std::string_view member) {
  put_(storage::Space::kData, member_element(member), {&storage::kPlainElement, 1});
}

void SetBuilder::add(std::string_view member) {
  ++size_;
  if (!intset_number(member) || size_ > limits_.intset_entries_max) limit_passed_ = true;
  if (is_large_) return put(member);
  small_.emplace_back(member);
  small_bytes_ += packed_bytes(member);
  if (small_bytes_ <= limits_.inline_max_bytes) return;
  is_large_ = true;
  for (const std::string& each : small_) put(each);
  small_ = {};
}

BuiltValue SetBuilder::finish() {
  BuiltValue set{.metadata = {.type = storage::ValueType::kSet, .limit_passed = limit_passed_},
                 .payload = {},
                 .size = size_};
  if (is_large_) {
    set.metadata.collection = storage::Metadata::Collection{.count = size_, .revision = 1};
    return set;
  }
  if (!limit_passed_) std::ranges::sort(small_, {}, intset_number);
  for (const std::string& member : small_) append_packed(&set.payload, member);
  return set;
}

BuiltValue rest_of_set(storage::Reader& data, const Record& record, const SetLimits& limits,
                       const PutElement& put, const MemberGoes& goes) {
  SetBuilder rest(limits, put);
  uint64_t gone = 0;
  SetReader(data, record).walk([&](std::string_view member) {
    goes(member) ? void(++gone) : rest.add(member);
    return !data.failed();
  });
  BuiltValue built = rest.finish();
  built.changes = gone;
  return built;
}

}  // namespace ingot::types
