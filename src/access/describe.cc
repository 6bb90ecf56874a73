// Which commands a selector allows is kept as a set, so rules that come to it have to be found: the
// categories that fit it best, one after another, then single commands for what is still different.
// It is done as Redis 7.0 does it, because tools compare what they set with what they get.
#include "src/access/describe.h"

namespace ingot::access {
namespace {

// The category that is best taken next, or none. `left` is what no rule has said yet: allowed
// commands when rules add to nothing, else all but the forbidden ones.
std::optional<size_t> best_category(const CommandSet& left, bool adds, const CommandSet& taken,
                                    const CommandIds& ids) {
  std::optional<size_t> best;
  size_t least_wrong = 0;
  size_t most_right = 0;
  for (size_t category = 0; category < std::size(contract::acl::kNames); ++category) {
    if (taken.test(category)) continue;
    const CommandSet& members = ids.redis_members(category);
    const size_t on = (left & members).count();
    const size_t off = members.count() - on;
    const size_t wrong = adds ? off : on;
    const size_t right = adds ? on : off;
    if (right <= wrong) continue;
    if (!best || wrong < least_wrong || (wrong == least_wrong && right > most_right)) {
      best = category;
      least_wrong = wrong;
      most_right = right;
    }
  }
  return best;
}

void allow(CommandSet* set, const CommandSet& commands, bool allowed) {
  if (allowed) {
    *set |= commands;
  } else {
    *set &= ~commands;
  }
}

std::string describe_selector(const Selector& selector, const CommandIds& ids) {
  std::string text = describe_keys(selector);
  if (!text.empty()) text += ' ';
  if (!selector.all_channels) text += "resetchannels ";
  const std::string channels = describe_channels(selector);
  if (!channels.empty()) text += channels + ' ';
  return text + describe_commands(selector, ids);
}

}  // namespace

std::string describe_commands(const Selector& selector, const CommandIds& ids) {
  const bool adds = !selector.future_commands;
  std::string rules = adds ? "-@all" : "+@all";
  CommandSet said;  // what the rules so far come to
  if (!adds) said.set();
  CommandSet left = selector.commands;
  CommandSet taken;  // categories
  while (const auto category = best_category(left, adds, taken, ids)) {
    taken.set(*category);
    rules.append(adds ? " +" : " -").append(contract::acl::kNames[*category]);
    allow(&said, ids.changed_by(*category), adds);
    allow(&left, ids.changed_by(*category), !adds);
  }
  for (size_t id = 0; id < ids.size(); ++id) {
    const bool allowed = selector.commands.test(id);
    if (allowed != said.test(id)) {
      rules.append(allowed ? " +" : " -").append(ids.name(id));
      allow(&said, ids.with_subcommands(id), allowed);
    }
    const auto arguments = selector.first_args.find(id);
    if (allowed || arguments == selector.first_args.end()) continue;
    for (const std::string& argument : arguments->second) {
      rules.append(" +").append(ids.name(id)).append("|").append(argument);
    }
  }
  return rules;
}

std::string describe_keys(const Selector& selector) {
  if (selector.all_keys) return "~*";
  std::string text;
  for (const KeyPattern& pattern : selector.keys) {
    if (!text.empty()) text += ' ';
    if (!(pattern.read && pattern.write)) text += pattern.read ? "%R" : pattern.write ? "%W" : "%";
    text += '~' + pattern.glob;
  }
  return text;
}

std::string describe_channels(const Selector& selector) {
  if (selector.all_channels) return "&*";
  std::string text;
  for (const std::string& glob : selector.channels) {
    if (!text.empty()) text += ' ';
    text += '&' + glob;
  }
  return text;
}

std::vector<std::string_view> describe_flags(const User& user) {
  std::vector<std::string_view> flags = {user.enabled ? "on" : "off"};
  if (user.nopass) flags.push_back("nopass");
  if (user.sanitize == User::Sanitize::kSkip) flags.push_back("skip-sanitize-payload");
  if (user.sanitize == User::Sanitize::kCheck) flags.push_back("sanitize-payload");
  return flags;
}

std::string describe(const User& user, const CommandIds& ids) {
  std::string text;
  for (const std::string_view flag : describe_flags(user)) text.append(flag).append(" ");
  for (const std::string& hash : user.passwords) text.append("#").append(hash).append(" ");
  text += describe_selector(user.root, ids);
  for (const Selector& selector : user.selectors) {
    text.append(" (").append(describe_selector(selector, ids)).append(")");
  }
  return text;
}

}  // namespace ingot::access
