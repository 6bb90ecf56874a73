// The options that SET and GETEX share, and the times that they and SETEX give.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/contract/reply.h"
#include "src/contract/row.h"

namespace ingot::commands {

// When a value is to expire, as it stands in the command.
struct ExpiryOption {
  enum class Unit : uint8_t { kNone, kSeconds, kMilliseconds, kUnixSeconds, kUnixMilliseconds };
  Unit unit = Unit::kNone;
  std::string_view text;

  bool given() const { return unit != Unit::kNone; }
  bool is_absolute() const { return unit >= Unit::kUnixSeconds; }
  // Unix milliseconds, 0 when nothing is given. Nothing when it is no valid time: the error, which
  // names the command, was answered.
  std::optional<int64_t> resolve(int64_t now_ms, std::string_view command,
                                 contract::ReplySink& reply) const;
};

struct StringOptions {
  bool nx = false;
  bool xx = false;
  bool get = false;
  bool keep_ttl = false;
  bool persist = false;
  ExpiryOption expiry;
};

enum class OptionsOf : uint8_t { kSet, kGetex };
// False on a syntax error.
[[nodiscard]] bool parse_string_options(contract::Args options, OptionsOf command,
                                        StringOptions* out);

}  // namespace ingot::commands
