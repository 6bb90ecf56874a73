// All users, and their accounts: what connections hold on to. A change makes a new state of a user,
// which then takes the place of the old one, so that checks on other threads go on undisturbed.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/access/acl_log.h"
#include "src/access/rules.h"
#include "src/access/user.h"

namespace ingot::access {

// A name to authenticate as. It stays one through all changes of its rules, until it is deleted.
class Account {
 public:
  explicit Account(std::string account_name, User user);

  const std::string name;

  // Whether every command with any arguments is allowed. Every command of every client asks.
  bool is_unrestricted() const { return unrestricted_.load(std::memory_order_acquire); }
  // A password is needed to be this user, or nobody can be.
  bool needs_password() const { return needs_password_.load(std::memory_order_acquire); }
  // No longer one of the users. Whoever still is it may do nothing.
  bool is_deleted() const { return deleted_.load(std::memory_order_acquire); }

  // The state now, and a number that no other state of any account has.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::shared_ptr<const User> user() const;

 private:
  friend class Users;
  void publish(User user);
  void mark_deleted();

  std::atomic<bool> unrestricted_{false};
  std::atomic<bool> needs_password_{true};
  std::atomic<bool> deleted_{false};
  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const User> user_;  // by mutex_
};
using AccountPtr = std::shared_ptr<Account>;

inline constexpr std::string_view kDefaultName = "default";

class Users {
 public:
  // The default user alone, which may do everything without a password.
  explicit Users(contract::Table::Families families);

  const CommandIds& ids() const { return ids_; }
  AclLog& log() { return log_; }

  // What connections begin as. It is never deleted.
  const AccountPtr& default_account() const { return default_; }
  AccountPtr find(std::string_view name) const;
  std::vector<AccountPtr> all() const;  // in the order of their names
  // Null when there is no such user, it is off, or the password is wrong.
  AccountPtr authenticate(std::string_view name, std::string_view password) const;

  // ACL SETUSER: applies all rules or, with an error, none.
  struct Change {
    AccountPtr account;
    std::shared_ptr<const User> before;  // null: it is new
  };
  using Rules = std::span<const std::string_view>;
  std::expected<Change, std::string> set(std::string_view name, Rules rules, bool all_channels);
  // Makes the user what `user` is.
  void put(std::string_view name, User user);
  // False when there is none, or it is the default user.
  bool remove(std::string_view name);
  // ACL LOAD: these and no others. All accounts but the default one are deleted, those of the same
  // name included. Without a default user it is what it was at first.
  void replace(std::map<std::string, User> users);
  // requirepass; empty: none is needed.
  void set_default_password(std::string_view password);

  // Held by whoever writes the ACL file.
  mutable std::mutex file_mutex;

 private:
  AccountPtr put_state(std::string_view name, AccountPtr account, User user);

  const CommandIds ids_;
  const AccountPtr default_;
  AclLog log_;
  std::mutex change_mutex_;  // held throughout a change, before mutex_
  mutable std::mutex mutex_;
  std::map<std::string, AccountPtr, std::less<>> accounts_;  // by mutex_
};

}  // namespace ingot::access
