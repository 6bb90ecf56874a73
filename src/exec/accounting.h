// Counts one run of a command: calls, time, errors, keyspace hits, and whether it was slow. Nothing
// is counted until kept(): a run that was thrown away (a cache miss) never happened. One that ended
// in a unit which is undone later counts, and only that.
#pragma once

#include <chrono>
#include <optional>

#include "src/contract/client.h"
#include "src/contract/reply.h"
#include "src/contract/row.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

class Accounting {
 public:
  using Clock = std::chrono::steady_clock;

  // What is run, for whom. `waits_since`: when it had to wait for the disk, or for the pool; that
  // counts as its time, too.
  struct Run {
    const contract::CommandRow& row;
    const net::Command& command;
    const contract::Client& client;
    std::optional<Clock::time_point> waits_since = {};
    std::optional<Clock::time_point> begins = {};  // when it is now, if somebody has just looked
    int db = 0;
    bool in_script = false;
    bool is_shown = false;    // when it ran before
    bool is_counted = false;  // it ran before, in a unit that was undone
    types::Notices& notices;  // where MONITOR and "keymiss" have their places
  };
  // Starts the clock. The reply must not have erred yet; what `run` names outlives this.
  Accounting(Services& services, const Run& run)
      : services_(services), run_(run), begun_(run.begins ? *run.begins : Clock::now()) {}

  // MONITOR hears of it now, before what it causes; else kept() tells.
  void show();
  // It has selected another database, which MONITOR tells with it.
  void moved(int db) { run_.db = db; }
  // It waits to be fed.
  void waits(const types::KeyReader& keys);
  // `keys` may be null (a session command).
  void kept(const contract::ReplySink& reply, const types::KeyReader* keys);
  // When that was; nothing: nobody has looked.
  std::optional<Clock::time_point> ended() const { return ended_; }

 private:
  void count(const contract::ReplySink& reply);
  void count_lookups(const types::KeyReader& keys);
  void note_slowness(const contract::CommandRow& row, Clock::duration took);

  Services& services_;
  Run run_;
  const Clock::time_point begun_;
  std::optional<Clock::time_point> ended_;
  bool shown_ = false;
};

// A command that waited to be fed and was not: its time is over, somebody has ended that (it has
// failed then, whatever its client is told), or its client has left.
void count_ended_wait(Services& services, const contract::CommandRow& row, bool failed);
// A command that was refused before it ran.
void count_rejected(Services& services, const contract::CommandRow* row, std::string_view error);
// The same; what its client is told.
std::string rejection(Services& services, const contract::CommandRow* row, std::string_view error);

}  // namespace ingot::exec
