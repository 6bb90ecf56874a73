// The number of a database as an argument of COPY and MOVE.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/contract/args.h"
#include "src/contract/context.h"

namespace ingot::commands {

// Nothing when it is none: the error was answered.
inline std::optional<int> database_index(contract::WriteContext& ctx, std::string_view text) {
  const std::optional<int64_t> number = contract::parse_integer(text);
  std::string_view error;
  if (!number) {
    error = contract::error::kNotInteger;
  } else if (*number < INT32_MIN || *number > INT32_MAX) {
    error = "ERR value is out of range, value must between -2147483648 and 2147483647";
  } else if (*number < 0 || *number >= static_cast<int64_t>(ctx.keys.databases().size())) {
    error = contract::error::kDbOutOfRange;
  } else {
    return static_cast<int>(*number);
  }
  ctx.reply.error(error);
  return std::nullopt;
}

}  // namespace ingot::commands
