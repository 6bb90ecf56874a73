// How the commands on sets find theirs.
#pragma once

#include <optional>
#include <random>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/settings/config.h"
#include "src/types/set_value.h"

namespace ingot::commands {

inline types::SetLimits set_limits(contract::WriteContext& ctx) {
  const auto settings = ctx.config.settings();
  return {.inline_max_bytes = settings->inline_max_bytes,
          .intset_entries_max = settings->set_max_intset_entries};
}

// `before` is null for a set to be made; it and `key` must outlive the writer.
inline types::SetWriter set_writer(contract::WriteContext& ctx, std::string_view key,
                                   const types::Record* before) {
  return {ctx.keys, ctx.db, key, before, set_limits(ctx)};
}

// To change the set of a key, or to make one where there is none.
inline auto open_set(contract::WriteContext& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kSet,
                [&](const types::Record& record) { return set_writer(ctx, key, before(record)); });
}

template <typename Context>
auto read_set(Context& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kSet, [&](const types::Record& record) {
    return types::SetReader(ctx.keys.data(), record);
  });
}

}  // namespace ingot::commands
