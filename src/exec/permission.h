// Whether a client's user may run a command, and the error when not. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/access/users.h"
#include "src/contract/client.h"
#include "src/contract/row.h"
#include "src/exec/services.h"

namespace ingot::exec {

// Who asks.
struct Asker {
  const access::User& user;
  const std::string& name;  // of the user
  uint64_t client_id;
  access::Origin origin;
};

// Why the user may not run the command, with an entry in ACL LOG.
access::Reason deny(Services& services, const Asker& asker, const contract::CommandRow& row,
                    contract::Args args);

// What the command answers because it would read keys that the user may not; empty: nothing.
std::string unnamed_keys_error(Services& services, const access::User& user,
                               const contract::CommandRow& row, contract::Args args);

// For each command that a script calls: the error, empty when it may run. `account` is the one that
// the script was sent as.
std::string script_error(Services& services, const access::Account& account, uint64_t client_id,
                         const contract::CommandRow& row, contract::Args args);

// What an EXEC may run: each command is checked again, because the rules may have changed since it
// was queued.
struct TransactionPermission {
  // Whoever sent the EXEC; a command in it may change that.
  access::AccountPtr account = {};
  uint64_t version = 0;                                     // of the account, when it was checked
  std::vector<std::pair<size_t, std::string>> errors = {};  // for those that may not run
  size_t asked = 0;  // so many commands have had their turn, if in a run that was undone

  // Before it is handed on: that may be to the writer, which is to compare nothing.
  void check_all(Services& services, uint64_t client_id,
                 std::span<const contract::QueuedCommand> commands);
  // When the turn of the command comes: the error, empty when it may run. What was said of it in a
  // run that was undone holds.
  std::string check(Services& services, uint64_t client_id, size_t index,
                    const contract::QueuedCommand& command);
};

}  // namespace ingot::exec
