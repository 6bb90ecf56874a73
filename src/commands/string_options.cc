// Parsing NX, XX, GET, KEEPTTL and the expiry options, and resolving those to a point in time.
#include "src/commands/string_options.h"

#include <limits>
#include <string>

#include "src/contract/args.h"

namespace ingot::commands {

using contract::equals_ignore_case;

namespace {

using Unit = ExpiryOption::Unit;

Unit unit_named(std::string_view word) {
  if (equals_ignore_case(word, "EX")) return Unit::kSeconds;
  if (equals_ignore_case(word, "PX")) return Unit::kMilliseconds;
  if (equals_ignore_case(word, "EXAT")) return Unit::kUnixSeconds;
  if (equals_ignore_case(word, "PXAT")) return Unit::kUnixMilliseconds;
  return Unit::kNone;
}

// Takes a word without a value, if it may stand with what came before.
bool take_word(std::string_view word, OptionsOf command, StringOptions* out) {
  if (command == OptionsOf::kGetex) {
    if (!equals_ignore_case(word, "PERSIST") || out->expiry.given()) return false;
    return out->persist = true;
  }
  if (equals_ignore_case(word, "NX") && !out->xx) return out->nx = true;
  if (equals_ignore_case(word, "XX") && !out->nx) return out->xx = true;
  if (equals_ignore_case(word, "GET")) return out->get = true;
  if (equals_ignore_case(word, "KEEPTTL") && !out->expiry.given()) return out->keep_ttl = true;
  return false;
}

}  // namespace

std::optional<int64_t> ExpiryOption::resolve(int64_t now_ms, std::string_view command,
                                             contract::ReplySink& reply) const {
  if (!given()) return 0;
  const std::optional<int64_t> number = contract::parse_integer(text);
  if (!number) {
    reply.error(contract::error::kNotInteger);
    return std::nullopt;
  }
  int64_t time_ms = *number;
  bool valid = time_ms > 0;
  if (unit == Unit::kSeconds || unit == Unit::kUnixSeconds) {
    valid = valid && !__builtin_mul_overflow(time_ms, int64_t{1000}, &time_ms);
  }
  if (!is_absolute()) valid = valid && !__builtin_add_overflow(time_ms, now_ms, &time_ms);
  if (valid) return time_ms;
  reply.error("ERR invalid expire time in '" + std::string(command) + "' command");
  return std::nullopt;
}

bool parse_string_options(contract::Args options, OptionsOf command, StringOptions* out) {
  for (size_t i = 0; i < options.size(); ++i) {
    const Unit unit = unit_named(options[i]);
    if (unit == Unit::kNone) {
      if (!take_word(options[i], command, out)) return false;
      continue;
    }
    // The same unit again replaces the time; another one is an error.
    const bool fits =
        !out->keep_ttl && !out->persist && (!out->expiry.given() || out->expiry.unit == unit);
    if (!fits || i + 1 == options.size()) return false;
    out->expiry = {.unit = unit, .text = options[++i]};
  }
  return true;
}

}  // namespace ingot::commands
