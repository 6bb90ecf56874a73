// How the commands on lists find theirs.
#pragma once

#include <optional>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/settings/config.h"
#include "src/types/list_value.h"

namespace ingot::commands {

// `before` is null for a list to be made; it and `key` must outlive the writer.
inline types::ListWriter list_writer(contract::WriteContext& ctx, std::string_view key,
                                     const types::Record* before) {
  const auto settings = ctx.config.settings();
  return {ctx.keys, ctx.db, key, before, settings->inline_max_bytes};
}

// To change the list of a key, or to make one where there is none.
inline auto open_list(contract::WriteContext& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kList,
                [&](const types::Record& record) { return list_writer(ctx, key, before(record)); });
}

template <typename Context>
auto read_list(Context& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kList, [&](const types::Record& record) {
    return types::ListReader(ctx.keys.data(), record);
  });
}

// An index as Redis takes it, from the end when negative; nothing when it is outside.
inline std::optional<uint64_t> list_index(int64_t index, uint64_t length) {
  const auto size = static_cast<int64_t>(length);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<uint64_t>(index);
}

// Tells that something was taken from a list that was stored.
inline void tell_list_removal(contract::WriteContext& ctx, std::string_view key,
                              std::string_view event, bool left) {
  ctx.keys.notify(types::notify::kList, event, ctx.db, key);
  if (!left) ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, key);
}
inline void finish_removal(contract::WriteContext& ctx, types::ListWriter& list,
                           std::string_view key, std::string_view event) {
  tell_list_removal(ctx, key, event, list.finish());
}

inline std::string_view pop_event(types::ListEnd end) {
  return end == types::ListEnd::kLeft ? "lpop" : "rpop";
}
inline std::string_view push_event(types::ListEnd end) {
  return end == types::ListEnd::kLeft ? "lpush" : "rpush";
}

}  // namespace ingot::commands
