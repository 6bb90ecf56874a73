// Taking what is left of a window, and drawing the next.
#include "src/types/drawn_members.h"

#include <algorithm>
#include <utility>

#include "src/types/member_table.h"

namespace ingot::types {

namespace {

void take_window(storage::Overlay& overlay, const MemberTable::Window& window,
                 std::vector<std::string>* members) {
  overlay.read_ahead(storage::Space::kData, window.begin, window.end,
                     [&](std::string_view key) { members->emplace_back(member_of(key)); });
}

// None when they are too many bytes to be held.
void take_all(MemberTable& table, std::vector<std::string>* members) {
  constexpr size_t kBytesMax = 64 << 10;
  size_t bytes = 0;
  table.walk([&](std::string_view member, std::string_view) {
    members->emplace_back(member);
    bytes += member.size();
    return bytes <= kBytesMax;
  });
  if (bytes > kBytesMax) members->clear();
}

}  // namespace

DrawnMembers::Drawn& DrawnMembers::of(storage::CollectionId id) {
  const auto known = std::ranges::find(sets_, id, &Drawn::id);
  if (known == sets_.end()) {
    sets_.push_front({.id = id, .members = {}});
    if (sets_.size() > kSetsMax) sets_.pop_back();
  } else {
    sets_.splice(sets_.begin(), sets_, known);
  }
  return sets_.front();
}

std::optional<std::string> DrawnMembers::next(storage::Overlay& overlay, storage::CollectionId id,
                                              uint64_t count, bool is_small,
                                              std::mt19937_64& random) {
  constexpr uint64_t kExpected = 64;
  Drawn& drawn = of(id);
  const bool is_in_row = std::exchange(drawn.left, count - 1) == count;
  std::vector<std::string>& members = drawn.members;
  if (is_small && !is_in_row) {
    members.clear();
    return std::nullopt;
  }
  MemberTable table(overlay, id);
  for (const bool is_last_try : {false, true}) {
    while (!members.empty() && !overlay.failed()) {
      std::string member = std::move(members.back());
      members.pop_back();
      if (table.contains(member)) return member;
    }
    if (is_last_try || overlay.failed()) break;
    if (is_small) {
      take_all(table, &members);
    } else {
      take_window(overlay, table.window(random, kExpected, count), &members);
    }
    std::ranges::shuffle(members, random);
  }
  return std::nullopt;
}

}  // namespace ingot::types
