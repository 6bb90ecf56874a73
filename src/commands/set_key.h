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

// To change the set of a key, or to make one where there is none; nothing when an error was
// answered. `before`, where the key's record is kept, must outlive the writer.
inline std::optional<types::SetWriter> open_set(contract::WriteContext& ctx, std::string_view key,
                                                types::Record* before) {
  const auto found = find_typed(ctx, key, storage::ValueType::kSet, before);
  if (found == types::Found::kWrongType) return std::nullopt;
  return std::make_optional<types::SetWriter>(
      ctx.keys, ctx.db, key, found == types::Found::kYes ? before : nullptr, set_limits(ctx));
}

// The set of a key, or nothing: it is not there, or an error was answered.
template <typename Context>
std::optional<types::SetReader> read_set(Context& ctx, std::string_view key, types::Record* record,
                                         types::Found* found) {
  *found = find_typed(ctx, key, storage::ValueType::kSet, record);
  if (*found != types::Found::kYes) return std::nullopt;
  return std::make_optional<types::SetReader>(ctx.keys.data(), *record);
}

}  // namespace ingot::commands
