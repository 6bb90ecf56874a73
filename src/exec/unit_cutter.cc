// One command after another, as it was run where it comes from.
#include "src/exec/unit_cutter.h"

#include <fmt/format.h>

#include <utility>

#include "src/contract/row.h"
#include "src/contract/table.h"
#include "src/data/store.h"

namespace ingot::exec {

using contract::CommandRow;
using contract::equals_ignore_case;

// What a master tells.
static bool is_told(const CommandRow& row) {
  constexpr uint32_t kTold = contract::flag::kWrite | contract::flag::kMayReplicate;
  return contract::is_write(row) && (row.flags & kTold) != 0;
}

UnitCutter::UnitCutter(Services& services, access::AccountPtr account, int db)
    : services_(services),
      account_(std::move(account)),
      exec_row_(services.table.find("exec")),
      db_(db) {}

Unit UnitCutter::make_unit(const CommandRow* row, const net::BatchPtr& batch,
                           const net::Command& command, int db) const {
  return {.row = row,
          .batch = batch,
          .command = &command,
          .db = db,
          .permission = {.account = account_}};
}

UnitCutter::Step UnitCutter::take(const net::BatchPtr& batch, const net::Command& command) {
  const contract::Args args = command.args;
  if (equals_ignore_case(args[0], "multi")) {
    multi_db_ = db_;
    return std::exchange(in_multi_, true) ? Step::kMisplaced : Step::kNone;
  }
  if (equals_ignore_case(args[0], "exec")) {
    if (!std::exchange(in_multi_, false)) return Step::kMisplaced;
    unit_ = make_unit(exec_row_, batch, command, multi_db_);
    unit_.transaction = std::exchange(queued_, {});
    return Step::kUnit;
  }
  error_.clear();
  const contract::Resolved resolved = services_.table.resolve(args, &error_);
  if (!error_.empty()) return Step::kUnknown;
  const bool selects = equals_ignore_case(args[0], "select");
  if (selects && !select(args)) return Step::kNoDatabase;
  if (!selects && !is_told(*resolved.row)) return Step::kUntold;
  if (in_multi_) {
    queued_.push_back({.row = resolved.row, .batch = batch, .command = &command});
    return Step::kNone;
  }
  if (selects) return Step::kNone;
  unit_ = make_unit(resolved.row, batch, command, db_);
  return Step::kUnit;
}

bool UnitCutter::select(contract::Args args) {
  const auto databases =
      static_cast<int64_t>(services_.data.store.initial_state().databases.size());
  const auto chosen = contract::parse_integer(args[1]);
  if (!chosen || *chosen < 0 || *chosen >= databases) {
    error_ = fmt::format("it uses database {}; raise 'databases'", args[1].substr(0, 20));
    return false;
  }
  db_ = static_cast<int>(*chosen);
  return true;
}

}  // namespace ingot::exec
