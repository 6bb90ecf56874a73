// Sets, small and large: finding, walking, adding and removing members, and keeping intsets sorted.
#include "src/types/set_value.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "src/types/collection.h"
#include "src/types/member_table.h"
#include "src/types/packed.h"
#include "storage/check.h"

namespace ingot::types {

using storage::Metadata;
using storage::Status;

namespace {

constexpr std::string_view kMemberValue{&storage::kPlainElement, 1};

void check_whole(storage::Reader& data, const PackedReader& reader) {
  if (!reader.broken()) return;
  data.latch_error(Status(Status::Code::kCorruption, "unreadable member of a set"));
}

}  // namespace

std::optional<int64_t> intset_number(std::string_view member) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(member.data(), member.data() + member.size(), number);
  if (error != std::errc() || end != member.data() + member.size()) return std::nullopt;
  // Only the form that the number is printed in: no leading zeros, no "-0".
  char digits[24];
  const auto printed = std::to_chars(digits, std::end(digits), number);
  if (member != std::string_view(digits, printed.ptr)) return std::nullopt;
  return number;
}

uint64_t SetReader::size() const {
  if (is_large()) return record_.collection()->count;
  PackedReader reader(record_.payload());
  std::string_view member;
  uint64_t count = 0;
  while (reader.next(&member)) ++count;
  check_whole(data_, reader);
  return count;
}

bool SetReader::contains(std::string_view member) {
  if (is_large()) return MemberTable(data_, record_.collection()->id).contains(member);
  PackedReader reader(record_.payload());
  std::string_view each;
  while (reader.next(&each)) {
    if (each == member) return true;
  }
  check_whole(data_, reader);
  return false;
}

void SetReader::walk(const Each& each) {
  if (!is_large()) {
    PackedReader reader(record_.payload());
    std::string_view member;
    while (reader.next(&member)) {
      if (!each(member)) return;
    }
    return check_whole(data_, reader);
  }
  MemberTable table(data_, record_.collection()->id);
  if (record_.limit_passed()) {
    return table.walk([&](std::string_view member, std::string_view) { return each(member); });
  }
  std::vector<std::pair<int64_t, std::string>> sorted;  // no more than an intset may have
  table.walk([&](std::string_view member, std::string_view) {
    sorted.emplace_back(intset_number(member).value_or(0), member);
    return true;
  });
  std::ranges::sort(sorted);
  for (const auto& [number, member] : sorted) {
    if (!each(member)) return;
  }
}

bool SetReader::random(std::mt19937_64& random, std::string* member) {
  if (is_large()) {
    std::string value;
    if (!table_) table_.emplace(data_, record_.collection()->id);
    return table_->random(random, record_.collection()->count, member, &value);
  }
  const uint64_t count = size();
  if (count == 0) return false;
  uint64_t left = random() % count;
  walk([&](std::string_view each) {
    member->assign(each);
    return left-- != 0;
  });
  return !data_.failed();
}

SetWriter::SetWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
                     const SetLimits& limits)
    : keys_(keys), db_(db), key_(key), before_(before), limits_(limits) {
  if (before == nullptr) {
    after_.type = storage::ValueType::kSet;
    return;
  }
  after_ = before->metadata();
  count_ = SetReader(keys.data(), *before).size();
  if (!after_.collection) packed_ = before->payload();
}

// Where the member is, or where it is to be put: in its numeric place while all are integers.
SetWriter::Place SetWriter::place_of(std::string_view member) const {
  const bool in_order = !after_.limit_passed;
  const std::optional<int64_t> number = in_order ? intset_number(member) : std::nullopt;
  PackedReader reader(packed_);
  std::string_view each;
  size_t begin = 0;
  while (reader.next(&each)) {
    if (each == member) return {.begin = begin, .end = reader.position(), .found = true};
    if (number && intset_number(each).value_or(0) > *number) break;
    begin = reader.position();
  }
  return {.begin = begin, .end = begin, .found = false};
}

bool SetWriter::add(std::string_view member) {
  if (after_.collection) {
    if (MemberTable(keys_.data(), after_.collection->id).contains(member)) return false;
    put_member(keys_.overlay(), after_.collection->id, member, kMemberValue);
  } else {
    const Place place = place_of(member);
    if (place.found) return false;
    std::string item;
    append_packed(&item, member);
    // A member that ends the intset goes behind the others, as all later ones.
    packed_.insert(!after_.limit_passed && !intset_number(member) ? packed_.size() : place.begin,
                   item);
  }
  ++count_;
  changed_ = true;
  if (!intset_number(member) || count_ > limits_.intset_entries_max) after_.limit_passed = true;
  if (!after_.collection && packed_.size() > limits_.inline_max_bytes) make_large();
  return true;
}

void SetWriter::make_large() {
  after_.collection = Metadata::Collection{.id = keys_.new_collection()};
  PackedReader reader(packed_);
  std::string_view member;
  while (reader.next(&member)) {
    put_member(keys_.overlay(), after_.collection->id, member, kMemberValue);
  }
  check_whole(keys_.data(), reader);
  packed_.clear();
}

bool SetWriter::remove(std::string_view member) {
  if (after_.collection) {
    if (!MemberTable(keys_.data(), after_.collection->id).contains(member)) return false;
    remove_member(keys_.overlay(), after_.collection->id, member);
  } else {
    const Place place = place_of(member);
    if (!place.found) return false;
    packed_.erase(place.begin, place.end - place.begin);
  }
  --count_;
  changed_ = true;
  return true;
}

void SetWriter::remove_drawn(std::string_view member) {
  if (!after_.collection) {
    const bool found = remove(member);
    INGOT_CHECK(found);
    return;
  }
  remove_member(keys_.overlay(), after_.collection->id, member);
  --count_;
  changed_ = true;
}

bool SetWriter::finish() {
  if (!changed_) return count_ != 0;
  if (count_ == 0) {
    if (before_ != nullptr) keys_.remove(db_, key_, *before_);
    return false;
  }
  after_.payload = {};
  if (after_.collection) {
    after_.collection->count = count_;
    revise(&after_);
  } else {
    after_.payload = packed_;
  }
  keys_.store(db_, key_, before_, after_);
  changed_ = false;
  return true;
}

}  // namespace ingot::types
