// Rules of users: what is accepted is described by rules that come to the same, and a rule that is
// refused changes nothing.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/access/describe.h"
#include "src/access/user_file.h"
#include "src/commands/families.h"
#include "storage/check.h"
#include "tests/fuzz/targets.h"

namespace ingot::fuzz {
namespace {

using access::Users;

// What no line can hold: Redis takes it, and ACL SAVE and CONFIG REWRITE refuse it.
bool is_sayable(std::string_view rule) {
  return rule.find_first_of(" \t\r\n\v\f\"'\\()") == rule.npos && rule.find('\0') == rule.npos;
}

// "%RW~*" is shown as the rule for all keys, and that is what it becomes when it is set again.
bool has_pattern_of_all(const access::Selector& selector) {
  return std::ranges::any_of(selector.keys, [](const access::KeyPattern& pattern) {
    return pattern.glob == "*" && pattern.read && pattern.write;
  });
}

void set_again(Users& users, const access::Account& account) {
  const std::string described = access::describe(*account.user(), users.ids());
  std::vector<std::string_view> rules;
  for (std::string_view rest = described; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    rules.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto again = users.set("again", rules, /*all_channels=*/false);
  if (!again) std::fprintf(stderr, "%s: %s\n", described.c_str(), again.error().c_str());
  INGOT_CHECK(again);
  INGOT_CHECK(access::describe(*again->account->user(), users.ids()) == described);
  INGOT_CHECK(users.remove("again"));
}

}  // namespace

void acl(std::string_view input) {
  static Users users(commands::all_families());
  (void)access::parse_users(input, "users.acl", {.ids = users.ids()});
  INGOT_CHECK(users.set("u", std::vector<std::string_view>{"reset"}, false));
  const access::AccountPtr account = users.find("u");
  bool sayable = true;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view rule = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    const std::string before = access::describe(*account->user(), users.ids());
    const bool taken = users.set("u", std::span(&rule, 1), false).has_value();
    if (!taken) INGOT_CHECK(access::describe(*account->user(), users.ids()) == before);
    const bool is_selector = rule.starts_with('(');
    sayable = sayable && (is_sayable(rule) || !taken ||
                          (is_selector && is_sayable(rule.substr(1, rule.size() - 2))));
  }
  const auto user = account->user();
  sayable = sayable && !has_pattern_of_all(user->root) &&
            std::ranges::none_of(user->selectors, has_pattern_of_all);
  if (sayable) set_again(users, *account);
}

}  // namespace ingot::fuzz
