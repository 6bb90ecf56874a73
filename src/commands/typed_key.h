// The look-up of commands that work on one type of value.
#pragma once

#include <string_view>

#include "src/contract/args.h"
#include "src/contract/context.h"
#include "src/types/collection.h"

namespace ingot::commands {

// As types::find_as(); a key of another type has been answered with WRONGTYPE.
template <typename Context>
types::Found find_typed(Context& ctx, std::string_view key, storage::ValueType type,
                        types::Record* record) {
  const types::Found found = types::find_as(ctx.keys, ctx.db, key, type, record);
  if (found == types::Found::kWrongType) ctx.reply.error(contract::error::kWrongType);
  return found;
}

}  // namespace ingot::commands
