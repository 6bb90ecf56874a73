// The state that every engine shares: who may write to it, and what a failure makes of that.
#include "storage/engine.h"

#include <chrono>
#include <thread>

#include "storage/no_wait_reads.h"

namespace ingot::storage {

void Engine::get_many(Space space, std::span<const std::string_view> keys,
                      std::span<std::string> values, std::span<Lookup> found) {
  const NoWaitReads::Refusal refusal;
  for (size_t i = 0; i < keys.size(); ++i) {
    found[i] = get(nullptr, space, keys[i], Tier::kCacheOnly, &values[i], nullptr);
    if (found[i] == Lookup::kError) found[i] = Lookup::kMiss;
  }
}

Status Engine::write(const Batch& batch, Durability durability) {
  if (health() == Health::kUndecided) return trouble();
  return do_write(batch, durability);
}

void Engine::give_way() const {
  constexpr std::chrono::milliseconds kPoll{5};
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
  while (lags() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kPoll);
}

Status Engine::sync() {
  if (health() != Health::kUndecided) return do_sync();
  // What was answered before stands in logs that may be sound.
  (void)do_sync();
  return trouble();
}

Status Engine::compact_all(std::atomic<bool>& stop) {
  for (const Space space : kAllSpaces) {
    if (stop) return {Status::Code::kBusy, "the server stops"};
    if (Status status = compact(space, {}); !status.ok()) return status;
  }
  return {};
}

Status Engine::try_resume() {
  if (health() == Health::kUndecided) return trouble();
  const uint64_t failures = failures_;
  Status status = do_try_resume();
  if (!status.ok()) return note(std::move(status));
  std::lock_guard lock(trouble_mutex_);
  if (health_ == Health::kUndecided || failures_ != failures) return trouble_;
  health_ = Health::kHealthy;
  trouble_ = Status();
  return {};
}

Status Engine::trouble() const {
  std::lock_guard lock(trouble_mutex_);
  return trouble_;
}

Status Engine::note(Status status) {
  using Code = Status::Code;
  Health worse = Health::kHealthy;
  if (status.code() == Code::kNoSpace) worse = Health::kNoSpace;
  if (status.code() == Code::kIo || status.code() == Code::kCorruption) worse = Health::kUndecided;
  {
    std::lock_guard lock(trouble_mutex_);
    if (worse == Health::kHealthy) return status;
    ++failures_;
    if (worse == health_) return status;
    if (worse < health_) return trouble_;
    health_ = worse;
    trouble_ = status;
  }
  if (on_background_error_) on_background_error_(status);
  return status;
}

}  // namespace ingot::storage
