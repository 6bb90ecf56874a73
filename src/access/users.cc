// Finding, changing and deleting users.
#include "src/access/users.h"

#include <utility>

#include "src/access/passwords.h"

namespace ingot::access {
namespace {

std::atomic<uint64_t> last_version{0};

User first_default_user() {
  User user = new_user(/*all_channels=*/true);
  user.enabled = user.nopass = true;
  user.root.all_keys = user.root.all_commands = user.root.future_commands = true;
  user.root.commands.set();
  return user;
}

}  // namespace

Account::Account(std::string account_name, User user) : name(std::move(account_name)) {
  publish(std::move(user));
}

std::shared_ptr<const User> Account::user() const {
  const std::lock_guard lock(mutex_);
  return user_;
}

void Account::publish(User user) {
  auto next = std::make_shared<const User>(std::move(user));
  const std::lock_guard lock(mutex_);
  unrestricted_ = next->allows_everything() && !deleted_;
  needs_password_ = !next->nopass || !next->enabled;
  user_.swap(next);
  version_ = ++last_version;
}

void Account::mark_deleted() {
  deleted_ = true;
  publish(new_user(/*all_channels=*/false));
}

Users::Users(contract::Table::Families families)
    : ids_(families),
      default_(std::make_shared<Account>(std::string(kDefaultName), first_default_user())) {
  accounts_.emplace(kDefaultName, default_);
}

AccountPtr Users::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(name);
  return found == accounts_.end() ? nullptr : found->second;
}

std::vector<AccountPtr> Users::all() const {
  std::vector<AccountPtr> accounts;
  const std::lock_guard lock(mutex_);
  accounts.reserve(accounts_.size());
  for (const auto& [name, account] : accounts_) accounts.push_back(account);
  return accounts;
}

AccountPtr Users::authenticate(std::string_view name, std::string_view password) const {
  AccountPtr account = find(name);
  const auto user = account != nullptr ? account->user() : nullptr;
  if (user != nullptr && user->enabled && user->nopass) return account;
  // Made for unknown users as well, so that time does not tell who is known.
  const std::string hash = hash_password(password);
  if (user == nullptr || !user->enabled) return nullptr;
  bool is_right = false;
  for (const std::string& right : user->passwords) is_right = same_hash(hash, right) || is_right;
  return is_right ? account : nullptr;
}

std::expected<Users::Change, std::string> Users::set(std::string_view name, Rules rules,
                                                     bool all_channels) {
  if (has_spaces(name)) {
    return std::unexpected("Usernames can't contain spaces or null characters");
  }
  const auto joined = join_selectors(rules);
  if (!joined) {
    return std::unexpected("Unmatched parenthesis in acl selector starting at '" +
                           std::string(rules[joined.error()]) + "'.");
  }
  const std::lock_guard change_lock(change_mutex_);
  AccountPtr account = find(name);
  std::shared_ptr<const User> before = account != nullptr ? account->user() : nullptr;
  User user = before != nullptr ? *before : new_user(all_channels);
  UserRules applied(user, {.ids = ids_, .all_channels = all_channels});
  for (const std::string& rule : *joined) {
    if (const auto fault = applied.apply(rule)) {
      return std::unexpected("Error in ACL SETUSER modifier '" + rule +
                             "': " + std::string(explain(*fault)));
    }
  }
  account = put_state(name, std::move(account), std::move(user));
  return Change{.account = std::move(account), .before = std::move(before)};
}

void Users::put(std::string_view name, User user) {
  const std::lock_guard change_lock(change_mutex_);
  put_state(name, find(name), std::move(user));
}

// `account` is the one of that name, or null.
AccountPtr Users::put_state(std::string_view name, AccountPtr account, User user) {
  if (account != nullptr) {
    account->publish(std::move(user));
    return account;
  }
  account = std::make_shared<Account>(std::string(name), std::move(user));
  const std::lock_guard lock(mutex_);
  accounts_.emplace(name, account);
  return account;
}

bool Users::remove(std::string_view name) {
  const std::lock_guard change_lock(change_mutex_);
  AccountPtr account;
  {
    const std::lock_guard lock(mutex_);
    const auto found = accounts_.find(name);
    if (found == accounts_.end() || found->second == default_) return false;
    account = std::move(found->second);
    accounts_.erase(found);
  }
  account->mark_deleted();
  return true;
}

void Users::replace(std::map<std::string, User> users) {
  std::map<std::string, AccountPtr, std::less<>> accounts;
  User of_default = first_default_user();
  for (auto& [name, user] : users) {
    if (name == kDefaultName) {
      of_default = std::move(user);
    } else {
      accounts.emplace(name, std::make_shared<Account>(name, std::move(user)));
    }
  }
  accounts.emplace(kDefaultName, default_);
  const std::lock_guard change_lock(change_mutex_);
  {
    const std::lock_guard lock(mutex_);
    accounts_.swap(accounts);
  }
  default_->publish(std::move(of_default));
  for (const auto& [name, account] : accounts) {
    if (account != default_) account->mark_deleted();
  }
}

void Users::set_default_password(std::string_view password) {
  const std::lock_guard change_lock(change_mutex_);
  User user = *default_->user();
  user.nopass = password.empty();
  user.passwords.clear();
  if (!password.empty()) user.passwords.push_back(hash_password(password));
  default_->publish(std::move(user));
}

}  // namespace ingot::access
