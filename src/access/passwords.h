// Passwords as ACL keeps them, SHA-256 in lower case hexadecimal, and new ones. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ingot::access {

std::string hash_password(std::string_view password);
bool is_password_hash(std::string_view text);
// Takes as long whatever the hashes are.
bool same_hash(std::string_view a, std::string_view b);
// From the system's generator for secrets.
std::string random_hex(size_t digits);

}  // namespace ingot::access
