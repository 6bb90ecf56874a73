// Splits an inline command ("SET key 'a value'") into its arguments by Redis' quoting rules.
#pragma once

#include <string_view>
#include <vector>

namespace ingot::net {

// Appends the arguments of the line [begin, end), which has no line end, to `args`. Quoted text is
// unescaped in place (it only gets shorter), so the views point into the line. False when quotes
// do not balance or a closing quote is not followed by a space: `args` and the line are then
// partly changed.
bool split_inline(char* begin, char* end, std::vector<std::string_view>& args);

}  // namespace ingot::net
