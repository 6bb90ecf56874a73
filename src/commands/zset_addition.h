// Adding members to a sorted set, or changing their scores: what ZADD and GEOADD have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/commands/word_places.h"
#include "src/commands/zset_key.h"
#include "src/contract/context.h"
#include "src/data/built_value.h"

namespace ingot::commands {

struct AddOptions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
  bool changed = false;  // CH: count changed members, too
  bool increment = false;
};

enum class Added : uint8_t { kNothing, kNew, kUpdated, kSame, kNotANumber };

// What becomes of a member that has the score `old`, or is not there; `*score` becomes its score.
Added added(const AddOptions& options, std::optional<double> old, double* score);

using OpenedSortedSet = Opened<types::SortedSetWriter>;
// Adds each member with the score of the same number; stores what has changed, and tells "zadd".
// The answer is the commands'. Very many are merged with what there was beside the writer, into a
// new collection. Empty: return at once.
std::optional<data::Change> add_members(contract::WriteContext& ctx, std::string_view key,
                                        OpenedSortedSet& set, Words members,
                                        std::vector<double> scores, const AddOptions& options);

}  // namespace ingot::commands
