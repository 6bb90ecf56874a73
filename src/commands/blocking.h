// What blocking commands share: their time-outs, and waiting.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/command/context.h"

namespace ingot::commands {

// When a wait of so many seconds ends, in Unix milliseconds (0: never); nothing when an error was
// answered.
std::optional<int64_t> wait_until(command::WriteContext& ctx, std::string_view seconds);
std::optional<int64_t> wait_until_ms(command::WriteContext& ctx, std::string_view milliseconds);

// Waits for one of the keys; where that is not possible, answers a null array. `memory` is given
// back in ctx.fed.
void wait_for(command::WriteContext& ctx, command::Args keys, int64_t until_ms,
              std::string memory = {});

// The keys that this run serves itself from: all, or the one that was fed.
inline std::vector<std::string_view> keys_to_try(const command::WriteContext& ctx,
                                                 command::Args keys) {
  if (ctx.fed) return {ctx.fed->key};
  return {keys.begin(), keys.end()};
}

}  // namespace ingot::commands
