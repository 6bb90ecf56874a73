// Taking what is left of a window, and drawing the next.
#include "src/types/drawn_members.h"

#include <algorithm>
#include <utility>

#include "src/types/member_table.h"

namespace ingot::types {

std::optional<std::string> DrawnMembers::next(storage::Overlay& overlay, storage::CollectionId id,
                                              uint64_t count, std::mt19937_64& random) {
  constexpr uint64_t kExpected = 64;
  const auto known = std::ranges::find(sets_, id, &Drawn::id);
  if (known == sets_.end()) {
    sets_.push_front({.id = id, .members = {}});
    if (sets_.size() > kSetsMax) sets_.pop_back();
  } else {
    sets_.splice(sets_.begin(), sets_, known);
  }
  std::vector<std::string>& members = sets_.front().members;
  MemberTable table(overlay, id);
  for (const bool is_last_try : {false, true}) {
    while (!members.empty() && !overlay.failed()) {
      std::string member = std::move(members.back());
      members.pop_back();
      if (table.contains(member)) return member;
    }
    if (is_last_try || overlay.failed()) break;
    const MemberTable::Window window = table.window(random, kExpected, count);
    overlay.read_ahead(storage::Space::kData, window.begin, window.end,
                       [&](std::string_view key) { members.emplace_back(member_of(key)); });
    std::ranges::shuffle(members, random);
  }
  return std::nullopt;
}

}  // namespace ingot::types
