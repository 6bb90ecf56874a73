// The patterns of CONFIG GET: * ? [a-z] [^abc] and \ before a character that is meant literally,
// without regard to case. Names are short and few, so it may be simple. Any thread.
#pragma once

#include <string_view>

namespace ingot::settings {

bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace ingot::settings
