// How a script calls commands: the side of whoever runs the command that runs the script. It alone
// knows whether that is the writer, a reader at a view, or a run for blocks alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "src/contract/reply.h"
#include "src/contract/row.h"

namespace ingot::contract {

// Whether one run of a script goes on. Any thread may end it; but what has begun to write is ended
// by its own thread or a shutdown alone, because what it wrote is kept.
class ScriptRun {
 public:
  // Before its first write. False: it was killed, and writes nothing.
  bool begin_write() {
    State before = State::kReads;
    return state_.compare_exchange_strong(before, State::kWrites) || before == State::kWrites;
  }
  bool wrote() const { return state_ == State::kWrites; }
  // False: it has written already.
  bool kill() {
    State before = State::kReads;
    return state_.compare_exchange_strong(before, State::kKilled) || before == State::kKilled;
  }
  bool killed() const { return state_.load(std::memory_order_relaxed) == State::kKilled; }
  // The server ends: what it has written so far is undone.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  enum class State : uint8_t { kReads, kWrites, kKilled };
  std::atomic<State> state_{State::kReads};
  std::atomic<bool> stopped_{false};
};

// One redis.call().
struct ScriptCall {
  Args args;  // with the command's name; never empty
  ScriptRun& run;
  int resp = 2;  // the form of the reply
  bool no_writes = false;
  bool allow_oom = false;
  bool is_told = true;  // to replicas
};

// One thread: that of the script.
class CommandCaller {
 public:
  virtual ~CommandCaller() = default;

  // Runs a command as a part of the unit and puts its encoded reply, an error perhaps, into
  // `*reply`. An error undoes that command alone. False: the run is given up (it is repeated when
  // blocks are there, or it was killed), and the script must not go on.
  [[nodiscard]] virtual bool call(const ScriptCall& call, std::string* reply) = 0;
  // Where the script runs.
  enum class Place : uint8_t {
    kWriter,  // others' writes wait for it
    kPool,
    kDry,  // in the pool, for blocks alone: nothing of it is kept, and it may be cut short
  };
  virtual Place place() const = 0;
  // False: it changes nothing, and its client has left. It may be cut short.
  virtual bool is_wanted() const { return true; }
  // Why a script may not begin here; empty: it may. `may_write`: it has declared what it does, and
  // not that it writes nothing.
  virtual std::string begin_refusal(bool may_write, bool allows_stale) const = 0;
  // For math.random(): another for each unit, the same when that is repeated.
  virtual uint64_t seed() = 0;
  // Whether the client may run this; nothing when there is no such command.
  virtual std::optional<bool> allows(Args args) const = 0;
};

}  // namespace ingot::contract
