// CLIENT PAUSE: until when which commands are held back, and who waits for the end of that. A
// command that is held back stays where it came in: it takes no thread, and counts as its client's
// input.
//
// The writer begins and ends a pause, with the commit of the unit that asked for it. What had been
// handed to the writer before and has not run by then, it holds back itself: when CLIENT PAUSE is
// answered, nothing changes any more.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <span>

#include "src/contract/client.h"
#include "src/contract/row.h"

namespace ingot::exec {

class ClientPause {
 public:
  enum class Mode : uint8_t { kNone, kChanges, kAll };

  // Of one that is under way already the later end and the stricter mode hold. Times are Unix, in
  // milliseconds.
  void begin(Mode mode, int64_t until_ms, int64_t now_ms);
  // By CLIENT UNPAUSE, or because its time is over: who waits goes on.
  void end();
  // Pauses of changes of the server's own, which no client ends: a failover's and a shutdown's.
  // What the writer has begun then may still change something, up to its next rest between two
  // groups.
  void begin_failover() { in_failover_ = true; }
  void end_failover();  // on the writer's thread, which may hold something back
  void begin_shutdown() { in_shutdown_ = true; }
  void end_shutdown();  // the same
  bool in_failover() const { return in_failover_; }

  Mode mode(int64_t now_ms) const;
  // Whether it has not been ended, be its time over or not.
  bool is_on() const {
    return mode_.load(std::memory_order_relaxed) != Mode::kNone ||
           in_failover_.load(std::memory_order_relaxed) ||
           in_shutdown_.load(std::memory_order_relaxed);
  }
  int64_t until_ms() const;  // INT64_MAX: none that ends by itself

  // Calls `go_on` once it ends, on the thread that ends it. A ticket to forget() that by; 0: there
  // is none any more.
  uint64_t wait(std::move_only_function<void()> go_on);
  void forget(uint64_t ticket);
  size_t waiting() const;

 private:
  Mode asked_mode(int64_t now_ms) const;  // by clients
  void wake();

  std::atomic<Mode> mode_{Mode::kNone};  // that clients asked for
  std::atomic<bool> in_failover_{false};
  std::atomic<bool> in_shutdown_{false};
  std::atomic<int64_t> until_ms_{0};
  mutable std::mutex mutex_;
  // By mutex_:
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, std::move_only_function<void()>> waiting_;  // in the order of coming
};

// What a pause of changes holds back: what writes, and what Redis' replicas are told of. `queue`:
// what an EXEC runs.
bool is_change(const contract::CommandRow& row, std::span<const contract::QueuedCommand> queue);

}  // namespace ingot::exec
