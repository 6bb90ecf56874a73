// Numbering the commands of the table and those of Redis alone.
#include "src/access/command_ids.h"

#include <algorithm>
#include <cctype>

#include "src/access/redis_only.h"
#include "src/contract/args.h"
#include "storage/check.h"

namespace ingot::access {
namespace {

constexpr std::string_view kAfterRedis = "7.1";  // the version behind the one that is the measure

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

}  // namespace

CommandIds::CommandIds(contract::Table::Families families) {
  const auto redis_only = redis_only_commands();
  const auto add_redis_only = [&](std::string_view parent, size_t container) {
    for (const RedisOnly& command : redis_only) {
      const size_t bar = command.name.find('|');
      const bool is_below = bar != std::string_view::npos && command.name.substr(0, bar) == parent;
      if (!is_below || by_name_.contains(std::string(command.name))) continue;
      put_below(container, add(command));
    }
  };
  for (const auto family : families) {
    for (const contract::CommandRow& row : family) {
      const size_t id = add(std::string(row.name), row);
      by_row_.emplace(&row, id);
      for (const contract::CommandRow& subcommand : row.subcommands) {
        const size_t below = add(contract::full_name(&row, subcommand), subcommand);
        by_row_.emplace(&subcommand, below);
        put_below(id, below);
      }
      add_redis_only(row.name, id);
    }
  }
  for (const RedisOnly& command : redis_only) {
    if (command.name.find('|') != std::string_view::npos ||
        by_name_.contains(std::string(command.name)))
      continue;
    add_redis_only(command.name, add(command));
  }
  for (size_t category = 0; category < categories_.size(); ++category) {
    for (size_t id = 0; id < entries_.size(); ++id) {
      if ((categories_of_[id] >> category & 1) == 0) continue;
      categories_[category].members.set(id);
      categories_[category].changed |= entries_[id].with_subcommands;
    }
    categories_[category].redis_members = categories_[category].members & of_redis_;
  }
}

size_t CommandIds::add(std::string name, const contract::CommandRow& row) {
  const size_t id = add(std::move(name), row.acl);
  of_redis_.set(id, row.since < kAfterRedis);
  return id;
}

size_t CommandIds::add(const RedisOnly& command) {
  const size_t id = add(std::string(command.name), command.categories);
  entries_[id].exists = false;
  of_redis_.set(id);
  return id;
}

size_t CommandIds::add(std::string name, uint32_t categories) {
  const size_t id = entries_.size();
  INGOT_CHECK(id < kCommandsMax);
  by_name_.emplace(name, id);
  Entry& entry = entries_.emplace_back();
  entry.name = std::move(name);
  entry.with_subcommands.set(id);
  categories_of_.push_back(categories);
  return id;
}

void CommandIds::put_below(size_t container, size_t subcommand) {
  entries_[container].with_subcommands.set(subcommand);
}

std::optional<size_t> CommandIds::find(std::string_view full_name) const {
  const auto found = by_name_.find(lower(full_name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

size_t CommandIds::id_of(const contract::CommandRow& row) const {
  const auto found = by_row_.find(&contract::listed_row(row));
  INGOT_CHECK(found != by_row_.end());
  return found->second;
}

std::optional<size_t> CommandIds::find_category(std::string_view name) {
  for (size_t i = 0; i < std::size(contract::acl::kNames); ++i) {
    if (contract::equals_ignore_case(contract::acl::kNames[i].substr(1), name)) return i;
  }
  return std::nullopt;
}

}  // namespace ingot::access
