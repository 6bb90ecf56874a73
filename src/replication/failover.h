// FAILOVER: this master hands its place to one of its replicas. Changes are held back until one of
// them has everything; then this server follows it, and tells it to lead in the same breath.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "src/contract/running_server.h"
#include "src/exec/services.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::replication {

class LinkKeeper;

class Failover {
 public:
  Failover(exec::Services& services, exec::Writer& writer, LinkKeeper& links);

  // The error reply; empty: it has begun, and nothing is changed any more but what the writer has
  // begun.
  std::string begin(contract::FailoverRequest request);
  // False: there is none. A replica that leads by now is not asked to follow again.
  bool abort();
  // Ten times a second, or so.
  void tick();
  std::string_view state() const;  // as INFO names it

 private:
  enum class State : uint8_t { kNone, kWaitsForSync, kInProgress };

  std::string target() const;
  bool find_caught_up();
  void hand_over();
  void on_answer(bool accepted);
  void give_up(std::string_view why);
  void clear();

  exec::Services& services_;
  exec::Writer& writer_;
  LinkKeeper& links_;

  mutable std::mutex mutex_;
  // By mutex_:
  State state_ = State::kNone;
  uint64_t round_ = 0;
  bool settled_ = false;  // the writer has begun to hold back changes
  contract::FailoverRequest request_;
  int64_t end_ms_ = 0;  // Unix; 0: never
};

}  // namespace ingot::replication
