// The number of a database as an argument of COPY and MOVE.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/command/args.h"
#include "src/command/context.h"

namespace ingot::commands {

// Nothing when it is none: the error was answered.
inline std::optional<int> database_index(command::WriteContext& ctx, std::string_view text) {
  const std::optional<int64_t> number = command::parse_integer(text);
  std::string_view error;
  if (!number) {
    error = command::error::kNotInteger;
  } else if (*number < INT32_MIN || *number > INT32_MAX) {
    error = "ERR value is out of range, value must between -2147483648 and 2147483647";
  } else if (*number < 0 || *number >= static_cast<int64_t>(ctx.keys.databases().size())) {
    error = command::error::kDbOutOfRange;
  } else {
    return static_cast<int>(*number);
  }
  ctx.reply.error(error);
  return std::nullopt;
}

}  // namespace ingot::commands
