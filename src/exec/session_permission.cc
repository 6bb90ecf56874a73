// Checking the commands of a client whose user may not do everything.
#include "src/contract/thresholds.h"
#include "src/exec/session.h"

namespace ingot::exec {

using contract::is_exec;
using contract::QueuedCommand;

// As the client's account is now. Called where nothing else executes the client.
const access::User& Session::user() {
  const access::Account& account = client_->own_account();
  if (const uint64_t version = account.version(); version != user_version_) {
    user_ = account.user();
    user_version_ = version;
  }
  return *user_;
}

Session::Step Session::check_permission(const QueuedCommand& command, std::string* error) {
  // An EXEC that is refused waits for WATCH; what is refused is logged, so it is found once.
  if (watching_ && is_exec(*command.row) && !idle()) return Step::kWait;
  if (!checked_ && is_long_check(command)) {
    if (idle()) check_in_pool(command);
    return Step::kWait;
  }
  *error = checked_ ? checked_->error : permission_error(command);
  return Step::kTaken;
}

bool Session::is_long_check(const QueuedCommand& command) {
  size_t arguments = command.command->args.size();
  if (is_exec(*command.row)) {
    for (const QueuedCommand& queued : client_->queue) arguments += queued.command->args.size();
  }
  return access::effort(user(), arguments) > contract::kComparedOnIoThread;
}

// The connection is idle, and nothing else of it runs meanwhile; then the command is tried again.
void Session::check_in_pool(const QueuedCommand& command) {
  exclusive_ = true;
  auto check = [self = shared_from_this(), command] {
    Checked checked{.error = self->permission_error(command), .transaction = {}};
    if (checked.error.empty() && is_exec(*command.row)) {
      checked.transaction = self->transaction_permission();
    }
    self->thread_.post([self, checked = std::move(checked)]() mutable {
      self->checked_ = std::move(checked);
      self->exclusive_ = false;
      if (self->connection_ != nullptr) self->advance();
    });
  };
  services_.data.readers.submit(std::move(check), data::Work::kLong);
}

std::string Session::permission_error(const QueuedCommand& command) {
  const auto origin = client_->in_multi ? access::Origin::kMulti : access::Origin::kTopLevel;
  const access::Reason reason = deny(services_,
                                     {.user = user(),
                                      .name = client_->own_account().name,
                                      .client_id = client_->id,
                                      .origin = origin},
                                     *command.row, command.command->args);
  if (reason == access::Reason::kAllowed) return {};
  return access::denied_error(reason, origin, services_.users.ids().name_of(*command.row));
}

std::string Session::unreadable_error(const QueuedCommand& command) {
  return unnamed_keys_error(services_, user(), *command.row, command.command->args);
}

// Of a single command: whose rights count for what it calls.
TransactionPermission Session::permission_of_script(const contract::CommandRow& row) const {
  return {.account = row.runs_script ? client_->account() : nullptr};
}

TransactionPermission Session::transaction_permission() {
  if (checked_) return checked_->transaction;
  TransactionPermission permission{.account = client_->account()};
  permission.check_all(services_, client_->id, client_->queue);
  return permission;
}

}  // namespace ingot::exec
