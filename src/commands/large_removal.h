// Taking so much from a collection, or looking at so much of it, that the writer would be busy for
// long. Beside it what is left is built as a new collection, and the old one is dropped; or, from
// one that is far larger than what goes, the elements are taken, and the writer repeats that.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/commands/typed_key.h"
#include "src/commands/word_places.h"
#include "src/contract/context.h"
#include "src/contract/thresholds.h"
#include "src/data/built_value.h"

namespace ingot::commands {

// Whether the writer does not remove so many elements itself.
bool is_large_removal(const contract::WriteContext& ctx, const types::Record& record,
                      uint64_t elements, uint64_t most = contract::kRemovedByWriter);

// The same of the records of a consumer group, two for a pending entry, of which the stream's count
// says nothing.
bool is_large_group_removal(const contract::WriteContext& ctx, const types::Record& record,
                            uint64_t elements);

// Makes what is left of the collection of a key, in the pool, and stores it; nothing is stored when
// it has no changes. Null: the run is given up, or reading failed; return at once.
using RestOf =
    std::function<types::BuiltValue(types::KeyReader& keys, const types::Record& record,
                                    const types::PutElement& put, data::SpillSort& taken)>;
std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const types::Record& before, const RestOf& rest_of,
                                     types::Touch touch = types::Touch::kModified);

// The same by whichever of the two ways writes less, when so many elements go, or more.
std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const types::Record& before, uint64_t elements,
                                     const data::TakeElements& take, const RestOf& rest_of,
                                     types::Touch touch = types::Touch::kModified);

// How many elements went, and whether any is left.
struct Removed {
  uint64_t count = 0;
  bool left = true;
};
// Removes the elements that are named behind the key: each from the writer `opened`, or, when there
// are more than `most`, beside it, and `rest_without(keys, record, put, is_gone)` builds the
// others. Empty: return at once.
template <typename Writer, typename Limits, typename RestWithout>
std::optional<Removed> remove_named(contract::WriteContext& ctx, contract::Args args,
                                    Opened<Writer>& opened, uint64_t most, const Limits& limits,
                                    RestWithout rest_without) {
  const contract::Args names = args.subspan(2);  // they live until the command is answered
  // Each is a search, which may read the disk: not of as many as of what lies side by side.
  const bool is_large =
      is_large_removal(ctx, opened.record(), names.size(), most) ||
      (opened.record().collection() && names.size() > contract::kRemovalsRepeatedByWriter);
  if (!is_large) {
    Removed removed;
    for (const std::string_view name : names) removed.count += opened->remove(name) ? 1 : 0;
    removed.left = opened->finish();
    return removed;
  }
  const auto take = [db = ctx.db, key = args[1], names,
                     limits](const data::Taking& here) -> std::optional<data::TakenCount> {
    Writer writer(here.keys, db, key, &here.before, limits);
    data::TakenCount removed;
    for (const std::string_view name : names) {
      removed.count += writer.remove(name) ? 1 : 0;
      if (here.is_too_much()) return std::nullopt;
    }
    removed.left = writer.finish();
    return removed;
  };
  const auto rest_of = [names, rest_without](types::KeyReader& keys, const types::Record& record,
                                             const types::PutElement& put, data::SpillSort&) {
    WordPlaces gone({.all = names});
    for (uint32_t i = 0; i < names.size(); ++i) gone.insert(i);
    return rest_without(keys, record, put,
                        [&](std::string_view name) { return gone.find(name).has_value(); });
  };
  // Each that is taken may be a read of the disk, where a walk reads many at once.
  constexpr uint64_t kWalkedForOne = 8;
  const bool is_walked = names.size() > contract::kRepeatedByWriter ||
                         opened.record().collection()->count <= kWalkedForOne * names.size();
  const auto rest = is_walked
                        ? leave_rest(ctx, args[1], opened.record(), rest_of)
                        : leave_rest(ctx, args[1], opened.record(), names.size(), take, rest_of);
  if (!rest) return {};
  return Removed{.count = rest->value.changes, .left = rest->value.size != 0};
}

// The key under which the next item is added to what is taken.
std::string next_place(const data::SpillSort& taken, bool reverse = false);

// Writes the items that were taken, behind the header that the caller has announced.
using WriteTaken = std::function<void(std::string_view item, contract::ReplySink& reply)>;
void reply_taken(contract::WriteContext& ctx, std::shared_ptr<data::SpillSort> taken,
                 WriteTaken write);

}  // namespace ingot::commands
