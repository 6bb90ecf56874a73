// Comparing used and free space with the limits, and asking a full disk whether it has healed.
#include "src/server/disk_guard.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

#include "src/contract/errors.h"
#include "src/metrics/log.h"

namespace ingot::server {

namespace {

constexpr int kMakeRoomMs = 10'000;  // behind the end of a refusal

std::string no_headroom() {
  return contract::write_error({storage::Status::Code::kNoSpace, {}});
}

}  // namespace

std::optional<std::string> growing_refusal(const settings::Settings& settings,
                                           const DiskFigures& figures, bool was_short) {
  if (settings.max_disk != 0 && figures.used_bytes > settings.max_disk) {
    return "OOM command not allowed when used disk > 'max-disk'.";
  }
  if (figures.free_bytes < settings.min_free_disk) {
    return "OOM command not allowed when free disk < 'min-free-disk'.";
  }
  // To go on would be the end of deleting, too.
  const uint64_t spare = was_short ? std::min(figures.headroom_bytes, figures.total_bytes / 8) : 0;
  if (figures.lacks_room || figures.free_bytes < figures.headroom_bytes + spare) {
    return no_headroom();
  }
  return std::nullopt;
}

uint64_t growth_allowed(const DiskFigures& figures) {
  return (figures.free_bytes - std::min(figures.free_bytes, figures.headroom_bytes)) / 4;
}

void DiskGuard::tick(const settings::Settings& settings) {
  struct statvfs disk {};
  if (statvfs(settings.dir.c_str(), &disk) != 0) {
    return writer_.refuse_growth(refusing_, std::numeric_limits<uint64_t>::max());
  }
  const uint64_t free_bytes = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  engine_.look_at_space();
  const bool is_tight = free_bytes < 4 * stats_.headroom_bytes || settings.max_disk != 0;
  const bool is_full_second = ticks_++ % (1000 / kPeriodMs) == 0;
  if (is_tight || is_full_second) stats_ = engine_.stats();
  DiskFigures figures{.used_bytes = stats_.disk_bytes,
                      .free_bytes = free_bytes,
                      .total_bytes = static_cast<uint64_t>(disk.f_blocks) * disk.f_frsize,
                      .headroom_bytes = stats_.headroom_bytes,
                      .lacks_room = stats_.lacks_room};
  // The engine heals only when it is asked to.
  if (engine_.health() == storage::Health::kNoSpace && engine_.try_resume().ok()) {
    metrics::log::notice("The engine writes again.");
  }
  std::string refusal = growing_refusal(settings, figures, refusing_ == no_headroom()).value_or("");
  replicas_.disk_is_tight = !refusal.empty() || free_bytes < 2 * settings.min_free_disk;
  // Growth is taken again long before all that was removed has given its space back: whoever
  // deletes goes on for a while, and what the engine has begun it ends.
  if (!refusal.empty()) make_room_until_ = ticks_ + kMakeRoomMs / kPeriodMs;
  const bool wants_room = ticks_ < make_room_until_ || stats_.makes_room;
  // On a full disk whoever writes waits for the end of what has begun.
  const bool is_full =
      !refusal.empty() && free_bytes < std::max(settings.min_free_disk, 2 * stats_.headroom_bytes);
  const bool is_due = is_full_second || (is_full && stats_.makes_room);
  // With less the work would take the last space, and not end.
  if (wants_room && is_due && free_bytes >= stats_.make_room_bytes) {
    collector_.make_room();
  }
  collector_.set_space(!refusal.empty(), std::max(settings.min_free_disk, stats_.headroom_bytes));
  if (refusal != refusing_) {
    refusing_ = refusal;
    if (refusal.empty()) {
      metrics::log::notice("There is room on the disk again, writes are accepted.");
    } else {
      metrics::log::warning("Writes are refused: {} ({} bytes used, {} free)", refusal,
                            figures.used_bytes, figures.free_bytes);
    }
  }
  writer_.refuse_growth(refusal, growth_allowed(figures));
}

}  // namespace ingot::server
