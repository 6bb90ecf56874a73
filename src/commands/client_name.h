// The rule for names of clients, which CLIENT SETNAME and HELLO SETNAME share.
#pragma once

#include <algorithm>
#include <string_view>

namespace ingot::commands {

inline constexpr std::string_view kBadClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// CLIENT LIST has the names of all in one reply.
inline constexpr size_t kClientNameMax = 4096;

// So that a line of CLIENT LIST can be taken apart again. Empty: no name.
inline bool is_client_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace ingot::commands
