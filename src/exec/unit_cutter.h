// From the commands of a master's stream, or of a log of Redis, to units of the writer: follows
// SELECT, and makes one unit of MULTI ... EXEC. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/access/users.h"
#include "src/contract/args.h"
#include "src/exec/services.h"
#include "src/exec/write_job.h"

namespace ingot::exec {

class UnitCutter {
 public:
  // What a transaction may come to, without the long strings of a master's: so many times what EXEC
  // may here, which is 'maxmemory'. Its changes are made in memory, like those.
  static constexpr uint64_t kTransactionShare = 8;

  // `account`: whose the units are. `db`: what is selected at first.
  UnitCutter(Services& services, access::AccountPtr account, int db);

  enum class Step : uint8_t {
    kNone,        // nothing is to be run yet, or at all
    kUnit,        // unit() is to be
    kMisplaced,   // MULTI inside of MULTI, or EXEC without one
    kNoDatabase,  // that was selected: error() says it
    kUnknown,     // it is no command, or not with these arguments: error() says it
    kUntold,      // a command that changes nothing: it is for nobody
  };
  Step take(const net::BatchPtr& batch, const net::Command& command);
  Unit unit() { return std::move(unit_); }  // once
  const std::string& error() const { return error_; }

  int db() const { return db_; }  // selected now
  bool in_multi() const { return in_multi_; }

 private:
  bool select(contract::Args args);
  Unit make_unit(const contract::CommandRow* row, const net::BatchPtr& batch,
                 const net::Command& command, int db) const;

  Services& services_;
  const access::AccountPtr account_;
  const contract::CommandRow* const exec_row_;
  int db_;
  bool in_multi_ = false;
  int multi_db_ = 0;                             // selected when that began
  std::vector<contract::QueuedCommand> queued_;  // of MULTI
  Unit unit_;
  std::string error_;
};

}  // namespace ingot::exec
