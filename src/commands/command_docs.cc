// COMMAND INFO and COMMAND DOCS in the shapes of Redis 7.0, and a parser for the grammar in which
// a row of contract/row.h writes its arguments.
#include "src/commands/command_docs.h"

#include <array>
#include <optional>
#include <string>

#include "src/contract/args.h"
#include "src/contract/table.h"

namespace ingot::commands {

using contract::CommandRow;
using contract::KeySpec;
using contract::ReplySink;

namespace {

constexpr std::array<std::string_view, 20> kFlagNames = {"write",
                                                         "readonly",
                                                         "denyoom",
                                                         "admin",
                                                         "pubsub",
                                                         "noscript",
                                                         "blocking",
                                                         "loading",
                                                         "stale",
                                                         "skip_monitor",
                                                         "skip_slowlog",
                                                         "asking",
                                                         "fast",
                                                         "no_auth",
                                                         "may_replicate",
                                                         "no_mandatory_keys",
                                                         "no_async_loading",
                                                         "no_multi",
                                                         "movablekeys",
                                                         "allow_busy"};
constexpr std::array<std::string_view, 11> kKeyFlagNames = {
    "RO",     "RW",     "OW",      "RM",         "access",        "update",
    "insert", "delete", "not_key", "incomplete", "variable_flags"};

template <size_t N>
std::vector<std::string_view> names_of(const std::array<std::string_view, N>& names,
                                       uint32_t bits) {
  std::vector<std::string_view> found;
  for (size_t i = 0; i < N; ++i) {
    if ((bits & (1u << i)) != 0) found.push_back(names[i]);
  }
  return found;
}

void reply_names(ReplySink& reply, const std::vector<std::string_view>& names) {
  reply.set(names.size());
  for (std::string_view name : names) reply.simple(name);
}

std::vector<std::string_view> split(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = text.find(by);
    parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + by.size());
  }
  return parts;
}

void reply_field(ReplySink& reply, std::string_view name, int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}

void reply_text(ReplySink& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}

void reply_unknown(ReplySink& reply) {
  reply_text(reply, "type", "unknown");
  reply.bulk("spec");
  reply.map(0);
}

void reply_begin_search(ReplySink& reply, const KeySpec& spec) {
  reply.bulk("begin_search");
  reply.map(2);
  if (spec.find == KeySpec::Find::kUnknown) return reply_unknown(reply);
  bool keyword = !spec.keyword.empty();
  reply_text(reply, "type", keyword ? "keyword" : "index");
  reply.bulk("spec");
  reply.map(keyword ? 2 : 1);
  if (keyword) {
    reply_text(reply, "keyword", spec.keyword);
    reply_field(reply, "startfrom", spec.begin);
  } else {
    reply_field(reply, "index", spec.begin);
  }
}

void reply_find_keys(ReplySink& reply, const KeySpec& spec) {
  reply.bulk("find_keys");
  reply.map(2);
  if (spec.find == KeySpec::Find::kUnknown) return reply_unknown(reply);
  bool range = spec.find == KeySpec::Find::kRange;
  reply_text(reply, "type", range ? "range" : "keynum");
  reply.bulk("spec");
  reply.map(3);
  reply_field(reply, range ? "lastkey" : "keynumidx", spec.last);
  if (range) {
    reply_field(reply, "keystep", spec.step);
    reply_field(reply, "limit", spec.limit);
  } else {
    reply_field(reply, "firstkey", spec.first_key);
    reply_field(reply, "keystep", spec.step);
  }
}

void reply_key_spec(ReplySink& reply, const KeySpec& spec) {
  reply.map(spec.notes.empty() ? 3 : 4);
  if (!spec.notes.empty()) reply_text(reply, "notes", spec.notes);
  reply.bulk("flags");
  reply_names(reply, key_flag_names(spec.flags));
  reply_begin_search(reply, spec);
  reply_find_keys(reply, spec);
}

// The first, last and step of the time before key specifications.
struct LegacyKeys {
  int first = 0;
  int last = 0;
  int step = 0;
};
LegacyKeys legacy_keys(const CommandRow& row) {
  LegacyKeys keys;
  for (const KeySpec& spec : row.keys) {
    if (!spec.keyword.empty() || spec.find != KeySpec::Find::kRange) continue;
    int last = spec.last < 0 ? spec.last : spec.begin + spec.last;
    if (keys.first == 0) {
      keys = {.first = spec.begin, .last = last, .step = spec.step};
    } else if (spec.begin == keys.last + 1 && keys.last >= 0) {
      keys.last = last;
    }
  }
  return keys;
}

// One node of CommandRow::arguments.
struct Argument {
  std::string_view name, type, since, deprecated_since;
  std::optional<std::string_view> token;
  std::optional<int64_t> key_spec;
  std::vector<std::string_view> flags;
  std::vector<Argument> children;
};

// A recursive descent over the compact form, which is our own constant text.
class ArgumentParser {
 public:
  explicit ArgumentParser(std::string_view text) : text_(text) {}

  std::vector<Argument> list() {
    std::vector<Argument> nodes;
    while (at_ < text_.size() && text_[at_] != ')') {
      nodes.push_back(node());
      if (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    return nodes;
  }

 private:
  Argument node() {
    Argument argument;
    const std::string_view head = until("=#@?*+!() ");
    const size_t colon = head.rfind(':');  // names may have some of their own: "ip:port"
    argument.name = head.substr(0, colon);
    argument.type = head.substr(colon + 1);
    if (take('=')) {
      std::string_view token = until("#@?+!() ");
      argument.token = token == "\"\"" ? std::string_view() : token;
    }
    if (take('#')) argument.key_spec = contract::parse_integer(until("@?*+!() "));
    if (take('@')) argument.since = until("?*+!() ");
    if (take('?')) argument.flags.push_back("optional");
    if (take('*')) argument.flags.push_back("multiple");
    if (take('+')) argument.flags.push_back("multiple_token");
    if (take('!')) argument.deprecated_since = until("() ");
    if (take('(')) {
      argument.children = list();
      ++at_;
    }
    return argument;
  }

  std::string_view until(std::string_view stops) {
    size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    std::string_view part = text_.substr(at_, end - at_);
    at_ = end;
    return part;
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void reply_arguments(ReplySink& reply, const std::vector<Argument>& arguments) {
  reply.array(arguments.size());
  for (const Argument& argument : arguments) {
    reply.map(2 + argument.key_spec.has_value() + argument.token.has_value() +
              !argument.since.empty() + !argument.deprecated_since.empty() +
              !argument.flags.empty() + !argument.children.empty());
    reply_text(reply, "name", argument.name);
    reply_text(reply, "type", argument.type);
    if (argument.key_spec) reply_field(reply, "key_spec_index", *argument.key_spec);
    if (argument.token) reply_text(reply, "token", *argument.token);
    if (!argument.since.empty()) reply_text(reply, "since", argument.since);
    if (!argument.deprecated_since.empty()) {
      reply_text(reply, "deprecated_since", argument.deprecated_since);
    }
    if (!argument.flags.empty()) {
      reply.bulk("flags");
      reply_names(reply, argument.flags);
    }
    if (!argument.children.empty()) {
      reply.bulk("arguments");
      reply_arguments(reply, argument.children);
    }
  }
}

void reply_history(ReplySink& reply, std::string_view history) {
  auto entries = split(history, "; ");
  reply.bulk("history");
  reply.set(entries.size());
  for (std::string_view entry : entries) {
    size_t colon = entry.find(": ");
    reply.array(2);
    reply.bulk(entry.substr(0, colon));
    reply.bulk(entry.substr(colon + 2));
  }
}

}  // namespace

std::vector<std::string_view> flag_names(uint32_t flags) {
  return names_of(kFlagNames, flags & ~uint32_t{flag::kMayReplicate});  // Redis keeps it to itself
}
std::vector<std::string_view> acl_names(uint32_t categories) {
  return names_of(acl::kNames, categories);
}
std::vector<std::string_view> key_flag_names(uint32_t flags) {
  return names_of(kKeyFlagNames, flags);
}

uint32_t acl_category(std::string_view name) {
  for (size_t i = 0; i < acl::kNames.size(); ++i) {
    if (contract::equals_ignore_case(acl::kNames[i].substr(1), name)) return 1u << i;
  }
  return 0;
}

void reply_info(ReplySink& reply, const CommandRow* parent, const CommandRow& row) {
  LegacyKeys keys = legacy_keys(row);
  reply.array(10);
  reply.bulk(contract::full_name(parent, row));
  reply.integer(row.arity);
  reply_names(reply, flag_names(row.flags));
  reply.integer(keys.first);
  reply.integer(keys.last);
  reply.integer(keys.step);
  reply_names(reply, acl_names(row.acl));
  auto tips = split(row.tips, ",");
  reply.set(tips.size());
  for (std::string_view tip : tips) reply.bulk(tip);
  reply.set(row.keys.size());
  for (const KeySpec& spec : row.keys) reply_key_spec(reply, spec);
  if (row.subcommands.empty()) return reply.set(0);  // so does Redis: an array, or an empty set
  reply.array(row.subcommands.size());
  for (const CommandRow& subcommand : row.subcommands) reply_info(reply, &row, subcommand);
}

void reply_docs(ReplySink& reply, const CommandRow* parent, const CommandRow& row) {
  bool deprecated = !row.deprecated_since.empty();
  auto arguments = ArgumentParser(row.arguments).list();
  reply.bulk(contract::full_name(parent, row));
  std::vector<std::string_view> doc_flags;
  if (deprecated) doc_flags.push_back("deprecated");
  if (row.is_internal) doc_flags.push_back("syscmd");
  const bool tells_complexity =
      !row.complexity.empty() && row.complexity != contract::kNoComplexity;
  reply.map(3 + tells_complexity + !doc_flags.empty() + deprecated + !row.replaced_by.empty() +
            !row.history.empty() + !arguments.empty() + !row.subcommands.empty());
  reply_text(reply, "summary", row.summary);
  reply_text(reply, "since", row.since);
  reply_text(reply, "group", row.group);
  if (tells_complexity) reply_text(reply, "complexity", row.complexity);
  if (!doc_flags.empty()) {
    reply.bulk("doc_flags");
    reply_names(reply, doc_flags);
  }
  if (deprecated) reply_text(reply, "deprecated_since", row.deprecated_since);
  if (!row.replaced_by.empty()) reply_text(reply, "replaced_by", row.replaced_by);
  if (!row.history.empty()) reply_history(reply, row.history);
  if (!arguments.empty()) {
    reply.bulk("arguments");
    reply_arguments(reply, arguments);
  }
  if (!row.subcommands.empty()) {
    reply.bulk("subcommands");
    reply.map(row.subcommands.size());
    for (const CommandRow& subcommand : row.subcommands) reply_docs(reply, &row, subcommand);
  }
}

}  // namespace ingot::commands
