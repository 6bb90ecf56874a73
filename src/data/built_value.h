// Built values: what a command stores as a whole. A small one, of few elements and few bytes, is
// made in the writer's group. A large one is made beside the writer, in the pool at a view, under a
// collection id that no key names; the writer links it when the keys that it comes from are still
// as the pool saw them. When they keep changing the writer makes it itself, past its group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/context.h"
#include "src/data/spill_sort.h"
#include "src/types/built_value.h"

namespace ingot::data {

// Makes the value of what `keys` sees, and hands its elements to `put`; failures latch in
// keys.data(). Runs on other threads, too, after the handler returned: let it capture by value, or
// views of the arguments, which live until the command is answered.
using MakeValue =
    std::function<types::BuiltValue(types::KeyReader& keys, const types::PutElement& put)>;

struct Recipe {
  contract::Args sources;  // the keys of ctx.db that decide about the value
  // To be made beside the writer from the first on: what only turns out to have too many bytes for
  // the group is made a second time, there.
  bool is_large = false;
  bool by_writer = false;  // all the same: `sources` are not all that decides
  // It counts on what the writer has just found of the sources: it is made of nothing else.
  bool is_as_seen = false;
  // For WriteContext::hold(), when it is made beside the writer.
  std::optional<std::vector<std::string>> holds = {};
};

// Nothing: the run is given up, or reading failed; return at once. The caller stores the value's
// record, or answers its error.
[[nodiscard]] std::optional<types::BuiltValue> build_value(contract::WriteContext& ctx,
                                                           const Recipe& recipe,
                                                           const MakeValue& make);

// What is left of a collection that very many elements are taken from: always made beside the
// writer, of what the writer has just found there. `taken` sorts what the command answers, or needs
// to know.
struct Rest {
  types::BuiltValue value;
  std::shared_ptr<SpillSort> taken;
};
using MakeRest = std::function<types::BuiltValue(types::KeyReader& keys,
                                                 const types::PutElement& put, SpillSort& taken)>;
[[nodiscard]] std::optional<Rest> build_rest(contract::WriteContext& ctx, contract::Args sources,
                                             const MakeRest& make);

// The same where the collection is far larger than what goes: the elements are taken from it beside
// the writer, which repeats what that comes to and stores the record. Only when they turn out to be
// too many is the rest made, and nothing is stored.
struct Taking {
  types::KeyReader& view;  // as the collection was
  types::KeyWriter& keys;  // where they are taken from it
  const types::Record& before;
  SpillSort& taken;
  std::function<bool()> is_too_much;  // asked now and then: bounds the memory it takes
};
// How many elements went, and whether any is left. Nothing: they are too many.
struct TakenCount {
  uint64_t count = 0;
  bool left = true;
};
using TakeElements = std::function<std::optional<TakenCount>(const Taking& here)>;
struct RestOrTaken {
  Rest rest;
  bool is_stored = false;
};
// How many the writer removes itself at most from a collection that this transaction has changed.
uint64_t removals_in_place_max(const contract::WriteContext& ctx);
// Whether an earlier run of the command has done so, and it is still good for this record.
bool has_taken_beside(const contract::WriteContext& ctx, const types::Record& before);
// Requires a collection, and not ctx.in_place unless has_taken_beside().
[[nodiscard]] std::optional<RestOrTaken> take_beside(contract::WriteContext& ctx,
                                                     std::string_view key,
                                                     const types::Record& before,
                                                     const TakeElements& take, const MakeRest& make,
                                                     types::Touch touch);

// What a collection is, or becomes, by very many changes: always made beside the writer, in a copy
// of it that nobody else sees.
struct Change {
  uint64_t changes = 0;  // 0: the value stays as it is
  int64_t answer = 0;
};
struct Changes {
  // Whether there may be any, of a value that is there.
  std::function<bool(types::KeyReader& keys, const types::Record& record)> any;
  // Makes them and stores the value. `before` is its record, or null when there was none. To call
  // `pause` between two of them bounds the memory they take, and invalidates cursors.
  std::function<Change(types::KeyWriter& keys, const types::Record* before,
                       const std::function<void()>& pause)>
      make;
};
[[nodiscard]] std::optional<types::BuiltValue> build_changed(contract::WriteContext& ctx,
                                                             std::string_view key,
                                                             const Changes& changes);

// The same where so few changes are made that the collection stays what it is: they are made beside
// the writer, which repeats what they come to. Requires a collection, and not ctx.in_place.
[[nodiscard]] std::optional<Change> change_beside(contract::WriteContext& ctx, std::string_view key,
                                                  const types::Record& before,
                                                  const Changes& changes);

// Of a small one.
types::BuiltValue build_in_group(types::KeyWriter& keys, const MakeValue& make);

}  // namespace ingot::data
