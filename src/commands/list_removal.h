// Taking very many elements from a list, and changing a long one where an element stands that has
// to be found first. Each answers nothing when the run is given up or reading failed: the handler
// returns at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "src/commands/large_removal.h"
#include "src/commands/list_key.h"

namespace ingot::commands {

// Whether the writer does not take so many elements from one end itself. Requires no more than
// there are.
bool is_large_pop(contract::WriteContext& ctx, const types::Record& record, types::ListEnd end,
                  uint64_t count);

// `count` elements from one end, for reply_taken(). Requires no more than there are.
std::shared_ptr<data::SpillSort> take_elements(contract::WriteContext& ctx, std::string_view key,
                                               const types::Record& before, types::ListEnd end,
                                               uint64_t count);

// Leaves the elements [first, end) alone.
[[nodiscard]] bool leave_elements(contract::WriteContext& ctx, std::string_view key,
                                  const types::Record& before, uint64_t first, uint64_t end);

// LREM.
std::optional<Removed> remove_matches(contract::WriteContext& ctx, std::string_view key,
                                      const types::Record& before, int64_t count,
                                      std::string_view element);

// LINSERT: how long the list is now; 0: it has no such pivot.
struct Insertion {
  bool before;
  std::string_view pivot;
  std::string_view element;
};
std::optional<uint64_t> insert_element(contract::WriteContext& ctx, std::string_view key,
                                       const types::Record& before, const Insertion& insertion);

}  // namespace ingot::commands
