// Parsing NX, XX, GET, KEEPTTL and the expiry options, and resolving those to a point in time.
#include "src/commands/string_options.h"

#include <limits>
#include <string>

#include "src/contract/args.h"

namespace ingot::commands {

using contract::ArgReader;

namespace {

using Unit = ExpiryOption::Unit;

// Takes a word without a value, if it may stand with what came before.
bool take_word(ArgReader& reader, OptionsOf command, StringOptions* out) {
  const bool timed = out->expiry.given();
  if (command == OptionsOf::kGetex) return !timed && reader.flag({{"persist", &out->persist}});
  return (!out->xx && reader.flag({{"nx", &out->nx}})) ||
         (!out->nx && reader.flag({{"xx", &out->xx}})) || reader.flag({{"get", &out->get}}) ||
         (!timed && reader.flag({{"keepttl", &out->keep_ttl}}));
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
  ArgReader reader(options, 0);
  while (reader.more()) {
    const auto unit = reader.choice<Unit>({{"ex", Unit::kSeconds},
                                           {"px", Unit::kMilliseconds},
                                           {"exat", Unit::kUnixSeconds},
                                           {"pxat", Unit::kUnixMilliseconds}});
    if (!unit) {
      if (!take_word(reader, command, out)) return false;
      continue;
    }
    // The same unit again replaces the time; another one is an error.
    const bool fits =
        !out->keep_ttl && !out->persist && (!out->expiry.given() || out->expiry.unit == *unit);
    if (!fits || !reader.more()) return false;
    out->expiry = {.unit = *unit, .text = reader.text()};
  }
  return true;
}

}  // namespace ingot::commands
