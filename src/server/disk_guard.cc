// Comparing used and free space with the limits, and asking a full disk whether it has healed.
#include "src/server/disk_guard.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "src/contract/errors.h"
#include "src/metrics/log.h"

namespace ingot::server {

std::optional<std::string> growing_refusal(const settings::Settings& settings,
                                           const DiskFigures& figures) {
  if (settings.max_disk != 0 && figures.used_bytes > settings.max_disk) {
    return "OOM command not allowed when used disk > 'max-disk'.";
  }
  if (figures.free_bytes < settings.min_free_disk) {
    return "OOM command not allowed when free disk < 'min-free-disk'.";
  }
  // To go on would be the end of deleting, too.
  if (figures.free_bytes < figures.headroom_bytes) {
    return contract::write_error({storage::Status::Code::kNoSpace, {}});
  }
  return std::nullopt;
}

void DiskGuard::tick(const settings::Settings& settings) {
  struct statvfs disk {};
  if (statvfs(settings.dir.c_str(), &disk) != 0) return;
  const uint64_t free_bytes = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  const bool is_tight = free_bytes < 4 * stats_.headroom_bytes;
  if (is_tight || ticks_++ % (1000 / kPeriodMs) == 0) stats_ = engine_.stats();
  DiskFigures figures{.used_bytes = stats_.disk_bytes,
                      .free_bytes = free_bytes,
                      .headroom_bytes = stats_.headroom_bytes};
  // The engine heals only when it is asked to.
  if (engine_.health() == storage::Health::kNoSpace &&
      figures.free_bytes >= figures.headroom_bytes && engine_.try_resume().ok()) {
    metrics::log::notice("The engine writes again.");
  }
  std::string refusal = growing_refusal(settings, figures).value_or("");
  if (refusal != refusing_) {
    refusing_ = refusal;
    if (refusal.empty()) {
      metrics::log::notice("There is room on the disk again, writes are accepted.");
    } else {
      metrics::log::warning("Writes are refused: {} ({} bytes used, {} free)", refusal,
                            figures.used_bytes, figures.free_bytes);
    }
    writer_.refuse_growth(refusal);
  }
}

}  // namespace ingot::server
