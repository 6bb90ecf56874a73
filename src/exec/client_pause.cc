// One pause for all clients, and the list of those who wait for its end.
#include "src/exec/client_pause.h"

#include <algorithm>
#include <utility>

namespace ingot::exec {

void ClientPause::begin(Mode mode, int64_t until_ms, int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  const bool goes_on = asked_mode(now_ms) != Mode::kNone;
  until_ms_ = goes_on ? std::max(until_ms_.load(), until_ms) : until_ms;
  mode_ = goes_on ? std::max(mode_.load(), mode) : mode;
}

void ClientPause::end() {
  mode_ = Mode::kNone;
  wake();
}

void ClientPause::end_failover() {
  in_failover_ = false;
  wake();
}

void ClientPause::end_shutdown() {
  in_shutdown_ = false;
  wake();
}

// Whom another pause holds back waits anew.
void ClientPause::wake() {
  std::map<uint64_t, std::move_only_function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::exchange(waiting_, {});
  }
  for (auto& [ticket, go_on] : waiting) go_on();
}

ClientPause::Mode ClientPause::asked_mode(int64_t now_ms) const {
  const Mode mode = mode_.load();
  return mode != Mode::kNone && now_ms < until_ms_.load() ? mode : Mode::kNone;
}

ClientPause::Mode ClientPause::mode(int64_t now_ms) const {
  return std::max(asked_mode(now_ms), in_failover_ || in_shutdown_ ? Mode::kChanges : Mode::kNone);
}

int64_t ClientPause::until_ms() const {
  return mode_ != Mode::kNone ? until_ms_.load() : std::numeric_limits<int64_t>::max();
}

uint64_t ClientPause::wait(std::move_only_function<void()> go_on) {
  const std::lock_guard lock(mutex_);
  if (!is_on()) return 0;
  waiting_.emplace(++last_ticket_, std::move(go_on));
  return last_ticket_;
}

void ClientPause::forget(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(ticket);
}

size_t ClientPause::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

static bool is_change(const contract::CommandRow& row) {
  if ((row.flags & contract::flag::kWrite) != 0) return true;
  // A script that is known to write nothing has the flags of the command that might.
  const bool only_reads = row.runs_script && contract::is_read(row);
  return (row.flags & contract::flag::kMayReplicate) != 0 && !only_reads;
}

bool is_change(const contract::CommandRow& row, std::span<const contract::QueuedCommand> queue) {
  if (!contract::is_exec(row)) return is_change(row);
  return std::ranges::any_of(
      queue, [](const contract::QueuedCommand& queued) { return is_change(*queued.row); });
}

}  // namespace ingot::exec
