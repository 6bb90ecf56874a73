// Counts one run of a command for INFO: calls, time, errors, keyspace hits. Nothing is counted
// until kept(): a run that was thrown away (a cache miss) never happened.
#pragma once

#include <chrono>

#include "src/command/reply.h"
#include "src/command/row.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

class Accounting {
 public:
  // Starts the clock. `reply` must not have erred yet.
  Accounting(Services& services, const command::CommandRow& row)
      : services_(services), row_(command::listed_row(row)), start_(std::chrono::steady_clock::now()) {}

  // `keys` may be null (a session command).
  void kept(const command::ReplySink& reply, const types::KeyReader* keys);

 private:
  Services& services_;
  const command::CommandRow& row_;
  std::chrono::steady_clock::time_point start_;
};

// A command that was refused before it ran.
void count_rejected(Services& services, const command::CommandRow* row, std::string_view error);

}  // namespace ingot::exec
