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

// How elements come to a collection: who adds them.
enum class Adding : uint8_t {
  kInWriter,
  kBeside,  // in the pool; the writer repeats what they come to
  kAnew,    // in the pool, which makes a new collection
};

// What adding costs: the writer adds no more than `most` itself, because others have to wait; in
// the place of one element so many could be written. `is_large`: the elements are, however few, and
// it would hold them some times over.
struct AddingCost {
  uint64_t most;
  uint64_t written;
  bool is_large = false;
};

// A collection is not written anew when it is so much larger that this costs more than it saves:
// the longer others would have to wait, the more may be written for each element. What this
// transaction alone has, or what keeps changing, the writer adds to.
inline Adding way_of_adding(const contract::WriteContext& ctx, const types::Record& record,
                            uint64_t elements, const AddingCost& cost) {
  constexpr uint64_t kRewrittenMax = 16;
  constexpr uint64_t kRewrittenForMany = 64;
  constexpr uint64_t kRewrittenForLarge = 2;
  if (ctx.in_place) return Adding::kInWriter;
  const uint64_t there = record.collection() ? record.collection()->count : 0;
  if (elements <= cost.most) {
    const bool is_anew = cost.is_large && there <= kRewrittenForLarge * elements;
    return is_anew ? Adding::kAnew : Adding::kInWriter;
  }
  const uint64_t rewritten = elements > contract::kRepeatedByWriter
                                 ? kRewrittenForMany
                                 : std::clamp(elements / cost.most, cost.written, kRewrittenMax);
  if (there <= rewritten * elements) return Adding::kAnew;
  return elements <= contract::kRepeatedByWriter ? Adding::kBeside : Adding::kInWriter;
}

// Stores what was made of the value of a key, if anything has changed.
inline data::Change store_added(contract::WriteContext& ctx, std::string_view key,
                                const types::Record& old, types::BuiltValue value) {
  value.metadata.expire_ms = old.expire_ms();
  if (value.changes != 0) ctx.keys.store(ctx.db, key, before(old), value.record());
  return {.changes = value.changes, .answer = value.answer};
}

// `add` as what the pool does to the value of a key.
template <typename Writer, typename Limits, typename Add, typename AnyNew>
data::Changes changes_by(const contract::WriteContext& ctx, std::string_view key,
                         storage::ValueType type, const Limits& limits, const Add& add,
                         const AnyNew& any_new) {
  // Where it says no because of the type, the key has changed, and the command runs again.
  const auto any = [type, any_new](types::KeyReader& keys, const types::Record& record) {
    return record.type() == type && any_new(keys, record);
  };
  const auto make = [db = ctx.db, key, limits, add](types::KeyWriter& keys,
                                                    const types::Record* before,
                                                    const std::function<void()>& pause) {
    Writer writer(keys, db, key, before, limits);
    return add(writer, pause);
  };
  return {.any = any, .make = make};
}

// Adds elements, given in the command's arguments, to the value that was opened: `add(writer,
// pause)` does it and stores what has changed, with a writer of the group or of the pool, and calls
// pause() between two of them. `any_new` tells whether a value that is there may change at all.
// Empty: return at once.
template <typename Writer, typename Limits, typename Add>
std::optional<data::Change> add_elements(
    contract::WriteContext& ctx, std::string_view key, Opened<Writer>& opened, uint64_t elements,
    const Limits& limits, const Add& add,
    const std::function<bool(types::KeyReader& keys, const types::Record& record)>& any_new =
        [](types::KeyReader&, const types::Record&) { return true; }) {
  const Adding way = way_of_adding(ctx, opened.record(), elements,
                                   {.most = contract::kAddedByWriter, .written = 1});
  if (way == Adding::kInWriter) return add(*opened, [] {});
  const auto changes = changes_by<Writer>(ctx, key, opened.type(), limits, add, any_new);
  if (way == Adding::kBeside) return data::change_beside(ctx, key, opened.record(), changes);
  const auto value = data::build_changed(ctx, key, changes);
  if (!value) return std::nullopt;
  return store_added(ctx, key, opened.record(), *value);
}

}  // namespace ingot::commands
