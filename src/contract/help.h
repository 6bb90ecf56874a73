// The reply of a container command's HELP, in Redis' form. Any thread.
#pragma once

#include <initializer_list>
#include <string_view>

#include "src/contract/reply.h"

namespace ingot::contract {

// `container` in capitals; `lines` are what stands between the heading and HELP itself.
void reply_help(ReplySink& reply, std::string_view container,
                std::initializer_list<std::string_view> lines);

}  // namespace ingot::contract
