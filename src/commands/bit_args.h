// Arguments that several bit commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/contract/args.h"
#include "src/settings/config.h"

namespace ingot::commands {

// A bit's position that SETRANGE could reach, too; `unit` is what "#1" counts in, 0: no such form.
// The error has been answered when there is none.
template <typename Context>
std::optional<uint64_t> bit_position(Context& ctx, std::string_view text, unsigned unit = 0) {
  const bool in_units = unit > 0 && text.starts_with('#');
  const std::optional<int64_t> number = contract::parse_integer(text.substr(in_units ? 1 : 0));
  int64_t position = number.value_or(-1);
  if (in_units && __builtin_mul_overflow(position, int64_t{unit}, &position)) position = -1;
  const int64_t bytes_max = ctx.config.settings()->proto_max_bulk_len;
  if (!number || position < 0 || position / 8 >= bytes_max) {
    ctx.reply.error("ERR bit offset is not an integer or out of range");
    return std::nullopt;
  }
  return static_cast<uint64_t>(position);
}

}  // namespace ingot::commands
