// Checking a command against the selectors of a user.
#include "src/access/verdict.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <optional>
#include <vector>

#include "src/contract/args.h"
#include "src/contract/glob.h"
#include "src/contract/table.h"

namespace ingot::access {
namespace {

using contract::Args;
using contract::CommandRow;
using contract::KeyAt;
namespace flag = contract::flag;
namespace key = contract::key;

bool key_allowed(const Selector& selector, std::string_view name, uint32_t flags) {
  const bool reads = (flags & key::kAccess) != 0;
  const bool writes = (flags & (key::kInsert | key::kDelete | key::kUpdate)) != 0;
  return std::ranges::any_of(selector.keys, [&](const KeyPattern& pattern) {
    return (pattern.read || !reads) && (pattern.write || !writes) &&
           contract::glob_matches(pattern.glob, name);
  });
}

// A pattern to listen on must be among the allowed ones as it stands.
bool channel_allowed(const Selector& selector, std::string_view channel, bool is_pattern) {
  return std::ranges::any_of(selector.channels, [&](const std::string& glob) {
    return is_pattern ? glob == channel : contract::glob_matches(glob, channel);
  });
}

// One call, whose keys are looked for once.
class Call {
 public:
  Call(const CommandIds& ids, const CommandRow& row, Args args)
      : row_(row), args_(args), id_(ids.id_of(row)) {}

  Verdict check(const Selector& selector) {
    if (!command_allowed(selector)) return {.reason = Reason::kCommand};
    if (!selector.all_keys) {
      for (const KeyAt& at : keys()) {
        if (!key_allowed(selector, args_[at.index], at.flags)) {
          return {.reason = Reason::kKey, .argument = at.index};
        }
      }
    }
    if (selector.all_channels || row_.channels == contract::ChannelArguments::kNone) return {};
    const bool is_pattern = row_.channels == contract::ChannelArguments::kAllPatterns;
    const size_t end = row_.channels == contract::ChannelArguments::kFirst ? 2 : args_.size();
    for (size_t i = 1; i < end; ++i) {
      if (!channel_allowed(selector, args_[i], is_pattern)) {
        return {.reason = Reason::kChannel, .argument = i};
      }
    }
    return {};
  }

 private:
  bool command_allowed(const Selector& selector) const {
    if (selector.all_commands || (row_.flags & flag::kNoAuth) != 0) return true;
    if (selector.commands.test(id_)) return true;
    const auto arguments = selector.first_args.find(id_);
    return args_.size() > 1 && arguments != selector.first_args.end() &&
           std::ranges::any_of(arguments->second, [&](const std::string& argument) {
             return contract::equals_ignore_case(argument, args_[1]);
           });
  }

  const std::vector<KeyAt>& keys() {
    if (keys_) return *keys_;
    keys_ = contract::keys_of(row_, args_);
    std::erase_if(*keys_, [](const KeyAt& at) { return (at.flags & key::kNotKey) != 0; });
    for (KeyAt& at : *keys_) {
      if ((at.flags & key::kVariableFlags) != 0 && row_.key_flags != nullptr) {
        at.flags = row_.key_flags(args_);
      }
    }
    return *keys_;
  }

  const CommandRow& row_;
  const Args args_;
  const size_t id_;
  std::optional<std::vector<KeyAt>> keys_;
};

bool reads_all_keys(const Selector& selector) {
  return selector.all_keys || std::ranges::any_of(selector.keys, [](const KeyPattern& pattern) {
           return pattern.read && pattern.glob == "*";
         });
}

template <typename Test>
bool any_selector(const User& user, const Test& test) {
  return test(user.root) || std::ranges::any_of(user.selectors, test);
}

}  // namespace

Verdict check(const User& user, const CommandIds& ids, const CommandRow& row, Args args) {
  Call call(ids, row, args);
  Verdict worst = {.reason = Reason::kCommand};
  const bool allowed = any_selector(user, [&](const Selector& selector) {
    const Verdict verdict = call.check(selector);
    if (verdict.reason > worst.reason ||
        (verdict.reason == worst.reason && verdict.argument > worst.argument)) {
      worst = verdict;
    }
    return verdict.is_allowed();
  });
  return allowed ? Verdict{} : worst;
}

uint64_t effort(const User& user, size_t arguments) {
  uint64_t patterns = user.root.keys.size() + user.root.channels.size();
  for (const Selector& selector : user.selectors) {
    patterns += selector.keys.size() + selector.channels.size();
  }
  return patterns * arguments;
}

bool may_read_all_keys(const User& user, const CommandIds& ids, const CommandRow& row, Args args) {
  Call call(ids, row, args);
  return any_selector(user, [&](const Selector& selector) {
    return reads_all_keys(selector) && call.check(selector).is_allowed();
  });
}

bool may_listen(const User& user, std::string_view channel, bool is_pattern) {
  return any_selector(user, [&](const Selector& selector) {
    return selector.all_channels || channel_allowed(selector, channel, is_pattern);
  });
}

bool narrows_channels(const User& before, const User& after) {
  boost::unordered_flat_set<std::string_view> allowed;  // there may be many thousands of both
  const bool allows_all = any_selector(after, [&](const Selector& selector) {
    allowed.insert(selector.channels.begin(), selector.channels.end());
    return selector.all_channels;
  });
  return !allows_all && any_selector(before, [&](const Selector& selector) {
    return selector.all_channels ||
           !std::ranges::all_of(selector.channels,
                                [&](const std::string& glob) { return allowed.contains(glob); });
  });
}

std::string denied_error(Reason reason, Origin origin, std::string_view command) {
  if (origin == Origin::kScript) {
    const std::string_view what = reason == Reason::kCommand ? "run this command or subcommand"
                                  : reason == Reason::kKey
                                      ? "access at least one of the keys mentioned in the command "
                                        "arguments"
                                      : "publish to the channel mentioned in the command";
    return "ERR The user executing the script can't " + std::string(what);
  }
  if (reason == Reason::kCommand) {
    return "NOPERM this user has no permissions to run the '" + std::string(command) + "' command";
  }
  return "NOPERM this user has no permissions to access one of the " +
         std::string(reason == Reason::kKey ? "keys" : "channels") + " used as arguments";
}

}  // namespace ingot::access
