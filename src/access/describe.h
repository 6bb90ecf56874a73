// Rules that make a user what it is, as ACL LIST, ACL GETUSER and ACL SAVE show them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/access/user.h"

namespace ingot::access {

// "on nopass ~* resetchannels -@all +get (~tmp:* resetchannels -@all +set)".
std::string describe(const User& user, const CommandIds& ids);

// The parts of it: "on", "nopass"; "-@all +get"; "~a %R~b"; "&a &b".
std::vector<std::string_view> describe_flags(const User& user);
std::string describe_commands(const Selector& selector, const CommandIds& ids);
std::string describe_keys(const Selector& selector);
std::string describe_channels(const Selector& selector);

}  // namespace ingot::access
