// Taking so much from a collection, or looking at so much of it, that the writer would be busy for
// long: what is left is built beside it as a new collection, and the old one is dropped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "src/contract/context.h"
#include "src/contract/thresholds.h"
#include "src/data/built_value.h"

namespace ingot::commands {

// Whether the writer does not remove so many elements itself.
inline bool is_large_removal(const types::Record& record, uint64_t elements,
                             uint64_t most = contract::kRemovedByWriter) {
  return record.collection() && elements > most;
}

// Makes what is left of the collection of a key, in the pool, and stores it; nothing is stored when
// it has no changes. Null: the run is given up, or reading failed; return at once.
using RestOf =
    std::function<types::BuiltValue(types::KeyReader& keys, const types::Record& record,
                                    const types::PutElement& put, data::SpillSort& taken)>;
std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const types::Record& before, const RestOf& rest_of,
                                     types::Touch touch = types::Touch::kModified);

// The elements that a command names: views of the arguments, which live until it is answered. Very
// many take their time: in the pool.
using Named = std::unordered_set<std::string_view>;

// The key under which the next item is added to what is taken.
std::string next_place(const data::SpillSort& taken, bool reverse = false);

// Writes the items that were taken, behind the header that the caller has announced.
using WriteTaken = std::function<void(std::string_view item, contract::ReplySink& reply)>;
void reply_taken(contract::WriteContext& ctx, std::shared_ptr<data::SpillSort> taken,
                 WriteTaken write);

}  // namespace ingot::commands
