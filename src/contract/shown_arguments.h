// The arguments of a command as logs may show them: passwords are left out.
#pragma once

#include <string>
#include <vector>

#include "src/contract/row.h"

namespace ingot::contract {

// "(redacted)" stands for what is secret in AUTH, HELLO, ACL SETUSER, CONFIG SET, MIGRATE. Only the
// first `most` are looked at. The views are the arguments' own.
std::vector<std::string_view> shown_arguments(const CommandRow& row, Args args, size_t most);

}  // namespace ingot::contract
