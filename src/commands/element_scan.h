// The arguments of SCAN, HSCAN, SSCAN and ZSCAN.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/contract/reply.h"
#include "src/contract/row.h"

namespace ingot::commands {

inline constexpr std::string_view kInvalidCursor = "ERR invalid cursor";

// As Redis reads it: digits, perhaps behind a sign, of an unsigned long; nothing is 0.
std::optional<uint64_t> parse_cursor(std::string_view text);

struct ScanOptions {
  uint64_t count = 10;
  std::string_view pattern = "*";
  std::optional<std::string_view> type;  // of SCAN alone

  bool matches(std::string_view element) const;
};

// Reads what stands behind the cursor; nothing when an error was answered.
enum class ScanOf : uint8_t { kKeys, kElements };
std::optional<ScanOptions> read_scan_options(contract::ReplySink& reply, contract::Args args,
                                             ScanOf what);

}  // namespace ingot::commands
