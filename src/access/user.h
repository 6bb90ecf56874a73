// What a user may do, as plain data. A state of a user never changes once it is published
// (users.h), so that many threads check commands by it while another one makes the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/access/command_ids.h"

namespace ingot::access {

struct KeyPattern {
  std::string glob;
  bool read = false;
  bool write = false;
};

// Commands with the keys and channels for them. A user may do what any one selector allows.
struct Selector {
  bool all_keys = false;
  bool all_channels = false;
  bool all_commands = false;     // nothing was taken away since +@all
  bool future_commands = false;  // +@all was given: what commands come later are allowed
  CommandSet commands;
  std::map<size_t, std::vector<std::string>> first_args;  // that are allowed of a forbidden command
  std::vector<KeyPattern> keys;
  std::vector<std::string> channels;

  bool allows_everything() const { return all_commands && all_keys && all_channels; }
};

struct User {
  // Kept and shown; RESTORE checks every payload.
  enum class Sanitize : uint8_t { kUnsaid, kSkip, kCheck };

  bool enabled = false;  // who is connected already stays
  bool nopass = false;   // any password will do
  Sanitize sanitize = Sanitize::kUnsaid;
  std::vector<std::string> passwords;  // SHA-256 in hexadecimal
  Selector root;                       // what its rules outside of parentheses come to
  std::vector<Selector> selectors;     // in parentheses

  bool allows_everything() const {
    return root.allows_everything() || std::ranges::any_of(selectors, &Selector::allows_everything);
  }
};

// As ACL SETUSER makes it before any rule.
inline User new_user(bool all_channels) {
  User user;
  user.root.all_channels = all_channels;
  return user;
}

}  // namespace ingot::access
