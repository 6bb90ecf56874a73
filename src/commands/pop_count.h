// How many elements LPOP, SPOP, ZPOPMIN and their relatives are to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/contract/args.h"
#include "src/contract/reply.h"

namespace ingot::commands {

// Nothing when the error has been answered.
inline std::optional<uint64_t> pop_count(contract::ReplySink& reply, std::string_view text) {
  const auto count = contract::parse_integer(text);
  if (count && *count >= 0) return static_cast<uint64_t>(*count);
  reply.error("ERR value is out of range, must be positive");
  return std::nullopt;
}

}  // namespace ingot::commands
