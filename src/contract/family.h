// Completes and checks the rows of a family when they are compiled: what all of them have in common
// is said once, and what follows from a row's flags is derived. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/contract/row.h"

namespace ingot::contract {

struct Family {
  std::string_view group;  // of rows that name none
  uint32_t acl = 0;        // categories of all rows but containers, beside those of their own
};

// The ACL categories that Redis gives a command by its flags.
constexpr uint32_t derived_categories(uint32_t flags) {
  uint32_t categories = (flags & flag::kFast) != 0 ? acl::kFast : acl::kSlow;
  if ((flags & flag::kWrite) != 0) categories |= acl::kWrite;
  if ((flags & flag::kReadonly) != 0) categories |= acl::kRead;
  if ((flags & flag::kAdmin) != 0) categories |= acl::kAdmin | acl::kDangerous;
  if ((flags & flag::kPubsub) != 0) categories |= acl::kPubsub;
  if ((flags & flag::kBlocking) != 0) categories |= acl::kBlocking;
  return categories;
}

// As Redis looks up what is not to be changed.
constexpr bool derived_counting(const CommandRow& row) {
  if ((row.flags & flag::kReadonly) != 0) return true;
  for (const KeySpec& spec : row.keys) {
    if ((row.flags & flag::kWrite) != 0 && (spec.flags & key::kRo) != 0) return true;
  }
  return false;
}

// Nothing runs but its subcommands.
constexpr bool is_container(const CommandRow& row) {
  return std::holds_alternative<std::monostate>(row.handler) && !row.subcommands.empty();
}

// Why a complete row cannot be; empty: it can.
constexpr std::string_view row_problem(const CommandRow& row) {
  if (row.name.empty()) return "it has no name";
  for (const char c : row.name) {
    if (c >= 'A' && c <= 'Z') return "its name is not in lower case";
  }
  if (row.arity == 0) return "it has no arity";
  if (row.group.empty() || row.since.empty() || row.summary.empty()) return "it is not documented";
  if (row.deprecated_since.empty() != row.replaced_by.empty()) {
    return "what is deprecated names what replaces it, and nothing else does";
  }
  const bool runs = !std::holds_alternative<std::monostate>(row.handler);
  if (!runs && row.subcommands.empty()) return "nothing runs it";
  if (!is_container(row) && row.complexity.empty()) return "its complexity is not documented";

  // What the flags say is what the handler's type allows.
  const bool writes = (row.flags & flag::kWrite) != 0;
  const bool only_reads = (row.flags & flag::kReadonly) != 0;
  if (writes && only_reads) return "it reads only, and writes";
  if (writes && !is_write(row)) return "its handler cannot write";
  if (only_reads && is_session(row)) return "its handler cannot read";
  if (row.immediate && !is_session(row)) return "what is immediate touches no data";
  if (row.scans && !is_read(row)) return "what scans is a read";
  bool changes_key = false;
  for (const KeySpec& spec : row.keys) {
    changes_key = changes_key || (spec.flags & key::kRw) != 0;
    if (row.arity > 0 && spec.begin >= row.arity) return "its keys lie behind its arguments";
  }
  // PFCOUNT reads, and yet keeps its estimate in the value: its key says so.
  if (only_reads && is_write(row) && !changes_key) return "its handler writes";
  if (row.value_index < 0 || (row.arity > 0 && row.value_index >= row.arity)) {
    return "its value lies behind its arguments";
  }
  return {};
}

// `rows` are as a file lists them, with the categories that are their own alone. A row that cannot
// be does not compile.
template <size_t kCount>
consteval std::array<CommandRow, kCount> family(const Family& family,
                                                const CommandRow (&rows)[kCount]) {
  std::array<CommandRow, kCount> complete{};
  for (size_t i = 0; i < kCount; ++i) {
    CommandRow& row = complete[i];
    row = rows[i];
    uint32_t derived = derived_categories(row.flags);
    // Of a script nobody knows what it reads.
    if ((family.acl & acl::kScripting) != 0) derived &= ~uint32_t{acl::kRead};
    if ((row.acl & derived) != 0) throw "its categories are derived";
    row.acl |= derived;
    row.counts_lookups = row.counts_lookups || derived_counting(row);
    if (!is_container(row)) row.acl |= family.acl;
    if (row.group.empty()) row.group = family.group;
    if (const std::string_view problem = row_problem(row); !problem.empty()) throw problem;
  }
  return complete;
}

}  // namespace ingot::contract
