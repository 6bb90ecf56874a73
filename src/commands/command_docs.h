// The replies of COMMAND INFO and COMMAND DOCS, made from the rows. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/contract/reply.h"
#include "src/contract/row.h"

namespace ingot::commands {

// The names that Redis uses, in the order of its bits.
std::vector<std::string_view> flag_names(uint32_t flags);
std::vector<std::string_view> acl_names(uint32_t categories);  // with "@"
std::vector<std::string_view> key_flag_names(uint32_t flags);
// The bit of a category by its name without "@"; 0: there is none.
uint32_t acl_category(std::string_view name);

void reply_info(contract::ReplySink& reply, const contract::CommandRow* parent,
                const contract::CommandRow& row);
void reply_docs(contract::ReplySink& reply, const contract::CommandRow* parent,
                const contract::CommandRow& row);

}  // namespace ingot::commands
