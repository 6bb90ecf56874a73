// The replicas that could take this server's place without a loss: each has every change that was
// answered under write-acks. An answer waits for all of them, not only for as many as write-acks
// says: who chooses the next master (Sentinel) compares figures that are up to seconds old, and may
// choose any of them. One that leaves or lags is counted in until an answer has waited for it in
// vain; meanwhile it may be the next master, and others about to follow it. It is a successor again
// when it has caught up.
//
// Threads: the writer's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/contract/client.h"
#include "src/contract/replicas.h"

namespace ingot::exec {

class Successors {
 public:
  Successors(contract::Replicas& replicas, int64_t now_ms)
      : replicas_(replicas), started_ms_(now_ms) {}

  // Somebody has acknowledged something.
  void note_acks();
  // Whether every successor, and as many replicas as write-acks says, have the stream up to
  // `offset`. Not within write-acks-timeout after the start, when there may be some that are not
  // back yet.
  bool all_have(uint64_t offset, int64_t now_ms) const;
  // Changes up to `offset` are answered. Who does not have them is none any more.
  void answered(uint64_t offset);
  // The stream becomes another one.
  void forget();

 private:
  contract::Replicas& replicas_;
  const int64_t started_ms_;
  uint64_t answered_ = 0;
  std::vector<std::shared_ptr<contract::Client>> members_;  // some have left, perhaps
};

}  // namespace ingot::exec
