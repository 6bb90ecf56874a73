// The times that EXPIRE, HEXPIRE and their relatives take.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "src/contract/args.h"
#include "src/contract/context.h"
#include "src/contract/errors.h"

namespace ingot::commands {

// What one of the commands takes for a time.
struct TimeForm {
  std::string_view command;  // for the error
  int64_t unit_ms;
  bool is_absolute;
  int64_t latest_ms = std::numeric_limits<int64_t>::max();  // Unix
};

// The time of expiry in Unix milliseconds, or an answered error.
inline std::optional<int64_t> expiry_time(contract::WriteContext& ctx, std::string_view text,
                                          const TimeForm& form) {
  const auto given = contract::parse_integer(text);
  if (!given) {
    ctx.reply.error(contract::error::kNotInteger);
    return std::nullopt;
  }
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const int64_t base_ms = form.is_absolute ? 0 : ctx.now_ms();
  const bool fits = *given <= form.latest_ms / form.unit_ms && *given >= kMin / form.unit_ms;
  if (!fits || *given * form.unit_ms > form.latest_ms - base_ms) {
    ctx.reply.error("ERR invalid expire time in '" + std::string(form.command) + "' command");
    return std::nullopt;
  }
  return *given * form.unit_ms + base_ms;
}

}  // namespace ingot::commands
