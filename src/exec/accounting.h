// Counts one run of a command for INFO: calls, time, errors, keyspace hits. Nothing is counted
// until kept(): a run that was thrown away (a cache miss) never happened.
#pragma once

#include <chrono>

#include "src/contract/reply.h"
#include "src/contract/row.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

class Accounting {
 public:
  // Starts the clock. `reply` must not have erred yet.
  Accounting(Services& services, const contract::CommandRow& row)
      : services_(services),
        row_(contract::listed_row(row)),
        start_(std::chrono::steady_clock::now()) {}

  // `keys` may be null (a session command).
  void kept(const contract::ReplySink& reply, const types::KeyReader* keys);

 private:
  Services& services_;
  const contract::CommandRow& row_;
  std::chrono::steady_clock::time_point start_;
};

// A command that was refused before it ran.
void count_rejected(Services& services, const contract::CommandRow* row, std::string_view error);

}  // namespace ingot::exec
