// Asking access/ about a command, noting what was denied, and the words for it.
#include "src/exec/permission.h"

#include <algorithm>

#include "src/contract/running_server.h"
#include "src/metrics/stats.h"
#include "src/settings/config.h"

namespace ingot::exec {
namespace {

using access::Reason;

std::string changed_since_queued(Reason reason) {
  const std::string_view why =
      reason == Reason::kCommand ? "no permission to execute the command or subcommand"
      : reason == Reason::kKey   ? "no permission to touch the specified keys"
                                 : "no permission to access one of the channels used as arguments "
                                   "to the command";
  return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the "
         "EXEC call. This command is no longer allowed for the following reason: " +
         std::string(why);
}

std::string exec_error(Services& services, const access::User& user, const std::string& name,
                       uint64_t client_id, const contract::QueuedCommand& command) {
  const contract::Args args = command.command->args;
  const Reason reason =
      deny(services,
           {.user = user, .name = name, .client_id = client_id, .origin = access::Origin::kMulti},
           *command.row, args);
  std::string error = reason != Reason::kAllowed
                          ? changed_since_queued(reason)
                          : unnamed_keys_error(services, user, *command.row, args);
  if (!error.empty()) services.data.stats.count_error(error);
  return error;
}

}  // namespace

Reason deny(Services& services, const Asker& asker, const contract::CommandRow& row,
            contract::Args args) {
  const access::CommandIds& ids = services.users.ids();
  const access::Verdict verdict = access::check(asker.user, ids, row, args);
  if (!verdict.is_allowed()) {
    const bool is_command = verdict.reason == Reason::kCommand;
    access::log_denied(
        services.users.log(), services.clients, asker.client_id,
        services.data.config.settings()->acllog_max_len,
        {.reason = access::reason_name(verdict.reason),
         .origin = asker.origin,
         .object = is_command ? ids.name_of(row) : std::string(args[verdict.argument]),
         .user = asker.name,
         .time_ms = services.server.now_ms()});
  }
  return verdict.reason;
}

std::string unnamed_keys_error(Services& services, const access::User& user,
                               const contract::CommandRow& row, contract::Args args) {
  if (row.unnamed_keys_error == nullptr) return {};
  if (access::may_read_all_keys(user, services.users.ids(), row, args)) return {};
  return row.unnamed_keys_error(args);
}

std::string script_error(Services& services, const access::Account& account, uint64_t client_id,
                         const contract::CommandRow& row, contract::Args args) {
  if (account.is_unrestricted()) return {};
  const auto user = account.user();
  const Reason reason = deny(services,
                             {.user = *user,
                              .name = account.name,
                              .client_id = client_id,
                              .origin = access::Origin::kScript},
                             row, args);
  if (reason == Reason::kAllowed) return {};
  return access::denied_error(reason, access::Origin::kScript, row.name);
}

void TransactionPermission::check_all(Services& services, uint64_t client_id,
                                      std::span<const contract::QueuedCommand> commands) {
  errors.clear();
  version = account->version();
  if (account->is_unrestricted()) return;
  const auto user = account->user();
  for (size_t i = 0; i < commands.size(); ++i) {
    std::string error = exec_error(services, *user, account->name, client_id, commands[i]);
    if (!error.empty()) errors.emplace_back(i, std::move(error));
  }
}

std::string TransactionPermission::check(Services& services, uint64_t client_id, size_t index,
                                         const contract::QueuedCommand& command) {
  if (index >= asked && account->version() != version) {
    std::erase_if(errors, [&](const auto& each) { return each.first == index; });
    std::string error;
    if (!account->is_unrestricted()) {
      error = exec_error(services, *account->user(), account->name, client_id, command);
    }
    if (!error.empty()) errors.emplace_back(index, std::move(error));
  }
  asked = std::max(asked, index + 1);
  const auto found = std::ranges::find(errors, index, &std::pair<size_t, std::string>::first);
  return found == errors.end() ? std::string() : found->second;
}

}  // namespace ingot::exec
