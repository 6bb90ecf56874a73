// How the commands on sorted sets find theirs.
#pragma once

#include <optional>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/settings/config.h"
#include "src/types/sorted_set_value.h"

namespace ingot::commands {

inline types::SortedSetLimits zset_limits(contract::WriteContext& ctx) {
  const auto settings = ctx.config.settings();
  return {.inline_max_bytes = settings->inline_max_bytes,
          .listpack_entries_max = settings->zset_max_listpack_entries,
          .listpack_value_max = settings->zset_max_listpack_value};
}

// `before` is null for a sorted set to be made; it and `key` must outlive the writer.
inline types::SortedSetWriter zset_writer(contract::WriteContext& ctx, std::string_view key,
                                          const types::Record* before) {
  return {ctx.keys, ctx.db, key, before, zset_limits(ctx)};
}

// To change the sorted set of a key, or to make one where there is none.
inline auto open_zset(contract::WriteContext& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kSortedSet,
                [&](const types::Record& record) { return zset_writer(ctx, key, before(record)); });
}

template <typename Context>
auto read_zset(Context& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kSortedSet, [&](const types::Record& record) {
    return types::SortedSetReader(ctx.keys.data(), record);
  });
}

// Tells that members were taken from a sorted set that was stored.
inline void tell_zset_removal(contract::WriteContext& ctx, std::string_view key,
                              std::string_view event, bool left) {
  ctx.keys.notify(types::notify::kZset, event, ctx.db, key);
  if (!left) ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, key);
}

// Bounds as Redis writes them: "1.5", "(1.5", "-inf"; "[m", "(m", "-", "+".
std::optional<types::ScoreBound> parse_score_bound(std::string_view text);
std::optional<types::LexBound> parse_lex_bound(std::string_view text);

inline constexpr std::string_view kBadScoreBound = "ERR min or max is not a float";
inline constexpr std::string_view kBadLexBound = "ERR min or max not valid string range item";

}  // namespace ingot::commands
