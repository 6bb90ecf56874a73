// All commands by name, with rename-command applied, and look-up.
// Constant after construction; any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/row.h"

namespace ingot::contract {

// What a command line names. `row` is the subcommand's row for a container.
struct Resolved {
  const CommandRow* row = nullptr;
  const CommandRow* parent = nullptr;  // the container, or null
};

class Table {
 public:
  using Families = std::span<const std::span<const CommandRow>>;
  using Renames = std::span<const std::pair<std::string, std::string>>;  // from, to ("" removes)

  // Fails with a sentence when a name is unknown or taken.
  static std::optional<std::string> check_renames(Families families, Renames renames);
  // `families` is read here only; the rows behind it stay.
  explicit Table(Families families, Renames renames = {});

  const CommandRow* find(std::string_view name) const;  // top level, any case
  // As full_name() says it: "get", "client|kill".
  Resolved find_named(std::string_view full_name) const;
  // The row to run, or on failure Redis' error reply (unknown command or subcommand, arity) in
  // `*error`; then `row` may still be set when only the arity is wrong.
  Resolved resolve(Args args, std::string* error) const;
  const std::vector<const CommandRow*>& rows() const { return rows_; }  // top level

 private:
  // So that a look-up needs no string of its own.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::vector<const CommandRow*> rows_;
  boost::unordered_flat_map<std::string, const CommandRow*, Hash, std::equal_to<>> by_name_;
};

// Indexes of the keys among `args`, with what the command does with them.
struct KeyAt {
  size_t index;
  uint32_t flags;
};
// Whether its calls name one key each.
bool has_one_key(const CommandRow& row);
std::vector<KeyAt> keys_of(const CommandRow& row, Args args);
void add_keys_of(const CommandRow& row, Args args, std::vector<KeyAt>* keys);  // to an empty one

std::string full_name(const CommandRow* parent, const CommandRow& row);
}  // namespace ingot::contract
