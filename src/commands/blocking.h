// What blocking commands share: their time-outs, waiting, and serving themselves from several keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/args.h"
#include "src/contract/context.h"
#include "src/types/collection.h"

namespace ingot::commands {

// When a wait of so many seconds ends, in Unix milliseconds (0: never); nothing when an error was
// answered.
std::optional<int64_t> wait_until(contract::WriteContext& ctx, std::string_view seconds);
std::optional<int64_t> wait_until_ms(contract::WriteContext& ctx, std::string_view milliseconds);

// Waits for one of the keys; where that is not possible, answers a null array. `memory` is given
// back in ctx.fed. When that is set it waits as before.
void wait_for(contract::WriteContext& ctx, contract::Args keys, int64_t until_ms,
              std::string memory = {}, bool for_removal = false);

// The keys that this run serves itself from: all, or the one that was fed.
inline std::vector<std::string_view> keys_to_try(const contract::WriteContext& ctx,
                                                 contract::Args keys) {
  if (ctx.fed) return {ctx.fed->key};
  return {keys.begin(), keys.end()};
}

enum class Try : uint8_t { kDone, kNothing };

// Calls `serve` with the first of the keys that holds a value of the type, and its record. An error
// is answered for one of another type, unless the key was fed.
template <typename Serve>
Try serve_first(contract::WriteContext& ctx, contract::Args keys, storage::ValueType type,
                const Serve& serve) {
  for (const std::string_view name : keys_to_try(ctx, keys)) {
    types::Record before;
    const types::Found found = types::find_as(ctx.keys, ctx.db, name, type, &before);
    if (found == types::Found::kYes) {
      serve(name, before);
      return Try::kDone;
    }
    if (found == types::Found::kWrongType && !ctx.fed) {
      ctx.reply.error(contract::error::kWrongType);
      return Try::kDone;
    }
  }
  return Try::kNothing;
}

// What LMPOP, ZMPOP and their blocking forms ask for.
struct PopSeveral {
  contract::Args keys;
  bool from_second_end = false;
  uint64_t count = 1;
};
// Reads numkeys key ... END [COUNT count], where END is one of two words; nothing when the error
// has been answered.
std::optional<PopSeveral> read_pop_several(contract::WriteContext& ctx, contract::Args args,
                                           std::string_view first_end, std::string_view second_end);

}  // namespace ingot::commands
