// The commands that rules speak of, each with a number: those of the table, and those that Redis
// 7.0 has and Ingot has not (redis_only.h), so that rules that were written for Redis are taken and
// come back as Redis shows them. Renaming changes nothing here, as in Redis.
// Constant after construction; any thread.
#pragma once

#include <array>
#include <bitset>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/row.h"
#include "src/contract/table.h"

namespace ingot::access {

struct RedisOnly;

inline constexpr size_t kCommandsMax = 1024;
using CommandSet = std::bitset<kCommandsMax>;

class CommandIds {
 public:
  explicit CommandIds(contract::Table::Families families);

  // By the full name ("get", "config|set"), in any case.
  std::optional<size_t> find(std::string_view full_name) const;
  // `row` is one of the families', or a variant of one.
  size_t id_of(const contract::CommandRow& row) const;

  // Containers stand right before their subcommands.
  size_t size() const { return entries_.size(); }
  const std::string& name(size_t id) const { return entries_[id].name; }
  const std::string& name_of(const contract::CommandRow& row) const { return name(id_of(row)); }
  bool exists(size_t id) const { return entries_[id].exists; }  // in Ingot
  bool is_subcommand(size_t id) const { return name(id).find('|') != std::string::npos; }
  bool has_subcommands(size_t id) const { return entries_[id].with_subcommands.count() > 1; }
  const CommandSet& with_subcommands(size_t id) const { return entries_[id].with_subcommands; }

  // Categories are numbered by their bits in contract::acl.
  static std::optional<size_t> find_category(std::string_view name);  // without "@", in any case
  const CommandSet& members(size_t category) const { return categories_[category].members; }
  // Of these those that Redis 7.0 has: by them it is found which categories describe a user.
  const CommandSet& redis_members(size_t category) const {
    return categories_[category].redis_members;
  }
  // What a rule with it changes: its members, and the subcommands of those that are containers.
  const CommandSet& changed_by(size_t category) const { return categories_[category].changed; }

 private:
  struct Entry {
    std::string name;
    bool exists = true;
    CommandSet with_subcommands;
  };
  struct Category {
    CommandSet members;
    CommandSet redis_members;
    CommandSet changed;
  };

  size_t add(std::string name, const contract::CommandRow& row);
  size_t add(const RedisOnly& command);
  size_t add(std::string name, uint32_t categories);
  void put_below(size_t container, size_t subcommand);

  std::vector<Entry> entries_;
  std::vector<uint32_t> categories_of_;
  CommandSet of_redis_;
  boost::unordered_flat_map<std::string, size_t> by_name_;
  boost::unordered_flat_map<const contract::CommandRow*, size_t> by_row_;
  std::array<Category, std::size(contract::acl::kNames)> categories_;
};

}  // namespace ingot::access
