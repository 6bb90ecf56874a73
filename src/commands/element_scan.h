// The arguments of HSCAN, SSCAN and ZSCAN, and the cursor of SCAN.
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

struct ElementScan {
  uint64_t count = 10;
  std::string_view pattern = "*";

  bool matches(std::string_view element) const;
};

// Reads what stands behind key and cursor; nothing when an error was answered.
std::optional<ElementScan> read_element_scan(contract::ReplySink& reply, contract::Args args);

}  // namespace ingot::commands
