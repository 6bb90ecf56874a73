// The rules of ACL SETUSER, ACL files and "user" lines: "on", "+@read", "-config|set", "%R~app:*",
// "(~tmp:* +get)", ... Pure; any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/access/user.h"

namespace ingot::access {

enum class Fault : uint8_t {
  kUnknownCommand,
  kSyntax,
  kPatternAfterAll,
  kChannelAfterAll,
  kNoSuchPassword,
  kBadHash,
  kArgumentOfSubcommand,
};
// In Redis' words.
std::string_view explain(Fault fault);

// What rules mean depends on.
struct RuleContext {
  const CommandIds& ids;
  bool all_channels = false;  // acl-pubsub-default: what a new selector begins with
};

// Applies rules to one selector. Remembers which patterns there are, so that thousands of them
// take no time for each other.
class SelectorRules {
 public:
  SelectorRules(Selector& selector, const CommandIds& ids) : selector_(selector), ids_(ids) {}

  // A rule that fails changes nothing.
  std::optional<Fault> apply(std::string_view rule);

 private:
  // Where each text stands in a list that others may have filled before.
  class Places {
   public:
    template <typename List, typename Text>
    std::optional<size_t> find(const List& list, std::string_view wanted, const Text& text_of);
    void clear() { by_text_.clear(); }

   private:
    boost::unordered_flat_map<std::string, size_t> by_text_;
  };

  std::optional<Fault> add_key(std::string_view rule);
  std::optional<Fault> add_channel(std::string_view rule);
  std::optional<Fault> allow(std::string_view command);
  std::optional<Fault> change(const CommandSet& commands, bool allowed);
  void set_all_commands(bool allowed);

  Selector& selector_;
  const CommandIds& ids_;
  Places keys_;
  Places channels_;
};

class UserRules {
 public:
  UserRules(User& user, const RuleContext& context)
      : user_(user), context_(context), root_(user.root, context.ids) {}

  // The selectors in parentheses are whole; see join_selectors(). A rule that fails changes
  // nothing.
  std::optional<Fault> apply(std::string_view rule);

 private:
  bool apply_flag(std::string_view rule);
  std::optional<Fault> change_password(std::string_view rule);
  std::optional<Fault> add_selector(std::string_view rules);
  void reset();

  User& user_;
  const RuleContext context_;
  SelectorRules root_;
};

// Joins the arguments of each selector in parentheses. The error is the index of the one that opens
// a selector which nothing closes.
std::expected<std::vector<std::string>, size_t> join_selectors(
    std::span<const std::string_view> arguments);

// Whether a name of a user, or a pattern, cannot be told from its neighbours in a line.
bool has_spaces(std::string_view text);

}  // namespace ingot::access
