// How the commands on hashes find theirs.
#pragma once

#include <optional>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/settings/config.h"
#include "src/types/hash_value.h"

namespace ingot::commands {

inline types::HashLimits hash_limits(contract::WriteContext& ctx) {
  const auto settings = ctx.config.settings();
  return {.inline_max_bytes = settings->inline_max_bytes,
          .listpack_entries_max = settings->hash_max_listpack_entries,
          .listpack_value_max = settings->hash_max_listpack_value};
}

// To change the hash of a key, or to make one where there is none; nothing when an error was
// answered. `before`, where the key's record is kept, must outlive the writer.
inline std::optional<types::HashWriter> open_hash(contract::WriteContext& ctx, std::string_view key,
                                                  types::Record* before) {
  const auto found = find_typed(ctx, key, storage::ValueType::kHash, before);
  if (found == types::Found::kWrongType) return std::nullopt;
  return std::make_optional<types::HashWriter>(
      ctx.keys, ctx.db, key, found == types::Found::kYes ? before : nullptr, hash_limits(ctx));
}

// A view of the hash of a key, or nothing: it is not there, or an error was answered.
template <typename Context>
std::optional<types::HashReader> read_hash(Context& ctx, std::string_view key,
                                           types::Record* record, types::Found* found) {
  *found = find_typed(ctx, key, storage::ValueType::kHash, record);
  if (*found != types::Found::kYes) return std::nullopt;
  return std::make_optional<types::HashReader>(ctx.keys.data(), *record, ctx.now_ms());
}

}  // namespace ingot::commands
