// Look-up of commands, the errors for unknown ones, renaming, and the positions of a call's keys.
#include "src/contract/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "src/contract/args.h"

namespace ingot::contract {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), to_lower);
  return result;
}

// What Redis shows of a client's word: up to a zero byte, and not too much.
constexpr size_t kShownMax = 128;
std::string_view shown(std::string_view text, size_t max = kShownMax) {
  return text.substr(0, std::min(text.find('\0'), max));
}

// The first arguments are shown, each and all of them cut.
std::string unknown_command(Args args) {
  std::string list;
  for (size_t i = 1; i < args.size() && list.size() < kShownMax; ++i) {
    std::string_view text = shown(args[i], kShownMax - list.size());
    list.append("'").append(text).append("' ");
  }
  return "ERR unknown command '" + std::string(shown(args[0])) +
         "', with args beginning with: " + list;
}

bool arity_fits(const CommandRow& row, size_t arguments) {
  auto given = static_cast<int>(std::min<size_t>(arguments, 1u << 30));
  return row.arity >= 0 ? given == row.arity : given >= -row.arity;
}

const CommandRow* find_subcommand(const CommandRow& parent, std::string_view name) {
  for (const CommandRow& row : parent.subcommands) {
    if (equals_ignore_case(row.name, name)) return &row;
  }
  return nullptr;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// Where the specification's keys begin; past the end when its keyword is not there. A range goes on
// to the end, so its keyword is the last option; of others the last one counts.
size_t first_index(const KeySpec& spec, Args args) {
  if (spec.keyword.empty()) return static_cast<size_t>(spec.begin);
  size_t found = args.size();
  for (auto i = static_cast<size_t>(spec.options_begin); i < args.size(); ++i) {
    if (static_cast<int>(i) >= spec.begin && equals_ignore_case(args[i], spec.keyword)) {
      found = i + 1;
      if (spec.last < 0) break;
    }
    const auto option = std::ranges::find_if(spec.options, [&](const OptionWord& each) {
      return equals_ignore_case(args[i], each.word);
    });
    if (option != spec.options.end()) i += static_cast<size_t>(option->values);
  }
  return found;
}

void add_range(const KeySpec& spec, size_t first, Args args, std::vector<KeyAt>* keys) {
  auto size = static_cast<int>(args.size());
  auto begin = static_cast<int>(first);
  int last = begin + spec.last;
  if (spec.last < 0) {
    last = size + spec.last;
    if (spec.limit > 1) last = begin + (last - begin) / spec.limit;
  }
  for (int i = begin; i <= last && i < size; i += spec.step) {
    keys->push_back(
        {.index = static_cast<size_t>(i), .flags = spec.flags & ~uint32_t{key::kIncomplete}});
  }
}

// False when there are not as many, or none is counted.
bool add_counted(const KeySpec& spec, size_t first, Args args, std::vector<KeyAt>* keys) {
  size_t count_index = first + static_cast<size_t>(spec.last);
  if (count_index >= args.size()) return false;
  size_t count = 0;
  for (char c : args[count_index]) {
    if (c < '0' || c > '9' || count > args.size()) return false;
    count = count * 10 + static_cast<size_t>(c - '0');
  }
  size_t index = first + static_cast<size_t>(spec.first_key);
  for (size_t left = count; left > 0; --left, index += static_cast<size_t>(spec.step)) {
    if (index >= args.size()) return false;
    keys->push_back({.index = index, .flags = spec.flags});
  }
  return count > 0;
}

}  // namespace

std::optional<std::string> Table::check_renames(Families families, Renames renames) {
  Table table(families, {});
  for (const auto& [from, to] : renames) {
    const auto with_names = [from, to](std::string_view error) {
      return fmt::format("{}: '{}' to '{}'", error, from, to);
    };
    const CommandRow* row = table.find(from);
    if (row == nullptr) return with_names("No such command in rename-command");
    table.by_name_.erase(lower(from));
    if (to.empty()) continue;
    if (!table.by_name_.emplace(lower(to), row).second) {
      return with_names("Target command name already exists");
    }
  }
  return std::nullopt;
}

Table::Table(Families families, Renames renames) {
  for (auto family : families) {
    for (const CommandRow& row : family) {
      rows_.push_back(&row);
      by_name_.emplace(std::string(row.name), &row);
    }
  }
  for (const auto& [from, to] : renames) {
    auto found = by_name_.find(lower(from));
    if (found == by_name_.end()) continue;
    const CommandRow* row = found->second;
    by_name_.erase(found);
    if (!to.empty()) {
      by_name_.emplace(lower(to), row);
    } else {
      std::erase(rows_, row);
    }
  }
}

const CommandRow* Table::find(std::string_view name) const {
  // Every command passes here: names of ordinary length without an allocation.
  std::array<char, 64> buffer;
  std::string long_name;
  std::string_view wanted;
  if (name.size() <= buffer.size()) {
    std::transform(name.begin(), name.end(), buffer.begin(), to_lower);
    wanted = {buffer.data(), name.size()};
  } else {
    wanted = long_name = lower(name);
  }
  auto found = by_name_.find(wanted);
  return found == by_name_.end() ? nullptr : found->second;
}

Resolved Table::find_named(std::string_view full_name) const {
  const size_t bar = full_name.find('|');
  const CommandRow* row = find(full_name.substr(0, bar));
  if (row == nullptr || bar == std::string_view::npos) return {.row = row, .parent = nullptr};
  for (const CommandRow& subcommand : row->subcommands) {
    if (equals_ignore_case(subcommand.name, full_name.substr(bar + 1))) {
      return {.row = &subcommand, .parent = row};
    }
  }
  return {};
}

Resolved Table::resolve(Args args, std::string* error) const {
  const CommandRow* row = find(args[0]);
  if (row == nullptr) {
    *error = unknown_command(args);
    return {};
  }
  Resolved resolved{.row = row, .parent = nullptr};
  if (!row->subcommands.empty() && args.size() >= 2) {
    resolved = {.row = find_subcommand(*row, args[1]), .parent = row};
    if (resolved.row == nullptr) {
      *error = "ERR unknown subcommand '" + std::string(shown(args[1])) + "'. Try " +
               upper(args[0]) + " HELP.";
      return {};
    }
  }
  if (!arity_fits(*resolved.row, args.size())) {
    *error = wrong_arity_error(full_name(resolved.parent, *resolved.row));
    return resolved;
  }
  if (resolved.row->instead != nullptr) {
    if (const CommandRow* other = resolved.row->instead(args)) resolved.row = other;
  }
  return resolved;
}

void add_keys_of(const CommandRow& row, Args args, std::vector<KeyAt>* keys) {
  for (const KeySpec& spec : row.keys) {
    if (spec.find == KeySpec::Find::kUnknown && spec.keyword.empty()) continue;
    size_t first = first_index(spec, args);
    if (first >= args.size()) continue;
    // MIGRATE's KEYS stands in place of its one key, which is then empty; else it is an error.
    if ((spec.flags & key::kIncomplete) != 0) {
      if (!keys->empty() && !args[keys->front().index].empty()) continue;
      keys->clear();
    }
    if (spec.find != KeySpec::Find::kKeyCount) {
      add_range(spec, first, args, keys);
    } else if (!add_counted(spec, first, args, keys)) {
      return keys->clear();  // as Redis: the command will answer a syntax error, and touch no key
    }
  }
}

bool has_one_key(const CommandRow& row) {
  if (row.keys.size() != 1) return false;
  const KeySpec& spec = *row.keys.begin();
  return spec.keyword.empty() && spec.find == KeySpec::Find::kRange && spec.last == 0;
}

std::vector<KeyAt> keys_of(const CommandRow& row, Args args) {
  std::vector<KeyAt> keys;
  add_keys_of(row, args, &keys);
  return keys;
}

std::string full_name(const CommandRow* parent, const CommandRow& row) {
  if (parent == nullptr) return std::string(row.name);
  return std::string(parent->name) + "|" + std::string(row.name);
}

}  // namespace ingot::contract
