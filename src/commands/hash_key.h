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

// `before` is null for a hash to be made; it and `key` must outlive the writer.
inline types::HashWriter hash_writer(contract::WriteContext& ctx, std::string_view key,
                                     const types::Record* before) {
  return {ctx.keys, ctx.db, key, before, hash_limits(ctx)};
}

// To change the hash of a key, or to make one where there is none.
inline auto open_hash(contract::WriteContext& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kHash,
                [&](const types::Record& record) { return hash_writer(ctx, key, before(record)); });
}

template <typename Context>
auto read_hash(Context& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kHash, [&](const types::Record& record) {
    return types::HashReader(ctx.keys.data(), record, ctx.keys.expired_by_ms());
  });
}

}  // namespace ingot::commands
