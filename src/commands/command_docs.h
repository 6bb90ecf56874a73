// The replies of COMMAND INFO and COMMAND DOCS, made from the rows. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/command/reply.h"
#include "src/command/row.h"

namespace ingot::commands {

// The names that Redis uses, in the order of its bits.
std::vector<std::string_view> flag_names(uint32_t flags);
std::vector<std::string_view> acl_names(uint32_t categories);  // with "@"
std::vector<std::string_view> key_flag_names(uint32_t flags);
// The bit of a category by its name without "@"; 0: there is none.
uint32_t acl_category(std::string_view name);

void reply_info(command::ReplySink& reply, const command::CommandRow* parent,
                const command::CommandRow& row);
void reply_docs(command::ReplySink& reply, const command::CommandRow* parent,
                const command::CommandRow& row);

}  // namespace ingot::commands
