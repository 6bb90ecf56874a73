// Whether a user may run a command with these arguments. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/access/user.h"
#include "src/contract/row.h"

namespace ingot::access {

// Of several selectors' reasons the last one counts.
enum class Reason : uint8_t { kAllowed, kCommand, kKey, kChannel };

struct Verdict {
  Reason reason = Reason::kAllowed;
  size_t argument = 0;  // the key or channel

  bool is_allowed() const { return reason == Reason::kAllowed; }
};

// `row` is what the arguments resolve to.
Verdict check(const User& user, const CommandIds& ids, const contract::CommandRow& row,
              contract::Args args);

// How many names are compared with patterns at most, to check a command with so many arguments.
uint64_t effort(const User& user, size_t arguments);

// Whether, by a selector that allows the command with its arguments, any key may be read.
bool may_read_all_keys(const User& user, const CommandIds& ids, const contract::CommandRow& row,
                       contract::Args args);

// Whether the user may go on listening on a channel, or on the channels like a pattern.
bool may_listen(const User& user, std::string_view channel, bool is_pattern);
// Whether `after` may listen on less than `before`.
bool narrows_channels(const User& before, const User& after);

// Where a command was refused.
enum class Origin : uint8_t { kTopLevel, kMulti, kScript };

// The error reply with its code; of a script's command the sentence without one.
std::string denied_error(Reason reason, Origin origin, std::string_view command);

}  // namespace ingot::access
