// How many elements LPOP, SPOP, ZPOPMIN and their relatives are to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/command/args.h"
#include "src/command/reply.h"

namespace ingot::commands {

// Nothing when the error has been answered.
inline std::optional<uint64_t> pop_count(command::ReplySink& reply, std::string_view text) {
  const auto count = command::parse_integer(text);
  if (count && *count >= 0) return static_cast<uint64_t>(*count);
  reply.error("ERR value is out of range, must be positive");
  return std::nullopt;
}

}  // namespace ingot::commands
