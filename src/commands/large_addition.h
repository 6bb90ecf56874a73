// Adding so much to a collection that the writer would be busy for long: what it becomes is built
// beside the writer as a new collection, and the old one is dropped.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/contract/thresholds.h"
#include "src/data/built_value.h"

namespace ingot::commands {

// Whether the writer does not add so many elements itself, because they are more than `most`. It
// does where the collection is so much larger that to write it anew would cost more than it saves:
// the longer others would have to wait, the more is written for each element. And to what this
// transaction alone has, or what keeps changing.
inline bool is_large_addition(const contract::WriteContext& ctx, const types::Record& record,
                              uint64_t elements, uint64_t most) {
  constexpr uint64_t kRewrittenMax = 16;
  if (ctx.in_place || elements <= most) return false;
  const uint64_t rewritten = std::min(elements / most, kRewrittenMax);
  return !record.collection() || record.collection()->count <= rewritten * elements;
}

// Stores what was made of the value of a key, if anything has changed.
inline data::Change store_added(contract::WriteContext& ctx, std::string_view key,
                                const types::Record& old, types::BuiltValue value) {
  value.metadata.expire_ms = old.expire_ms();
  if (value.changes != 0) ctx.keys.store(ctx.db, key, before(old), value.record());
  return {.changes = value.changes, .answer = value.answer};
}

// Adds elements, given in the command's arguments, to the value that was opened: `add(writer,
// pause)` does it and stores what has changed, in the writer's group or, when there are more than
// `most` elements, beside it, with a writer of its own; between two of them it calls pause().
// `any_new` tells then whether a value that is there may change at all. Empty: return at once.
template <typename Writer, typename Limits, typename Add>
std::optional<data::Change> add_elements(
    contract::WriteContext& ctx, std::string_view key, Opened<Writer>& opened, uint64_t elements,
    uint64_t most, const Limits& limits, const Add& add,
    const std::function<bool(types::KeyReader& keys, const types::Record& record)>& any_new =
        [](types::KeyReader&, const types::Record&) { return true; }) {
  if (!is_large_addition(ctx, opened.record(), elements, most)) return add(*opened, [] {});
  // Where it says no because of the type, the key has changed, and the command runs again.
  const auto any = [type = opened.type(), any_new](types::KeyReader& keys,
                                                   const types::Record& record) {
    return record.type() == type && any_new(keys, record);
  };
  const auto make = [db = ctx.db, key, limits, add](types::KeyWriter& keys,
                                                    const types::Record* before,
                                                    const std::function<void()>& pause) {
    Writer writer(keys, db, key, before, limits);
    return add(writer, pause);
  };
  const auto value = data::build_changed(ctx, key, {.any = any, .make = make});
  if (!value) return std::nullopt;
  return store_added(ctx, key, opened.record(), *value);
}

}  // namespace ingot::commands
