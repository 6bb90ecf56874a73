// Whether this server follows a master, and what that means for those who run commands.
//
// It changes in two steps: who asks for it changes what sessions take at once, and the writer
// follows between two groups. Between them the writer's queue holds nothing that was taken by the
// new rule and would be run by the old one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "src/contract/row.h"

namespace ingot::exec {

struct Following {
  // As it was asked for last. Any thread.
  std::atomic<bool> asked{false};
  // By the settings.
  std::atomic<bool> read_only{true};
  std::atomic<bool> serves_stale{true};
  // The link is in the master's stream: what is read here is at most some moments old.
  std::atomic<bool> in_step{false};
  // The connection whose units are taken; each has another number. What an earlier one has brought
  // is dropped.
  std::atomic<uint64_t> link{0};

  // Changed by the writer between groups; read by the writer.
  bool writer = false;

  // Whether sessions refuse what clients would write.
  bool refuses_writes() const {
    return asked.load(std::memory_order_relaxed) && read_only.load(std::memory_order_relaxed);
  }
  bool is_stale() const {
    return asked.load(std::memory_order_relaxed) && !in_step.load(std::memory_order_relaxed) &&
           !serves_stale.load(std::memory_order_relaxed);
  }
};

inline const std::string kReadOnly = "READONLY You can't write against a read only replica.";
inline const std::string kMasterDown =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

}  // namespace ingot::exec
