// The arithmetic of oom-score-adj, and /proc/self/oom_score_adj, where the kernel takes it.
#include "src/server/oom_score.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "src/metrics/log.h"

namespace ingot::server {
namespace {

constexpr const char* kFile = "/proc/self/oom_score_adj";

}  // namespace

bool OomScore::apply(const settings::Settings& settings) {
  using settings::OomScoreAdj;
  std::lock_guard lock(mutex_);
  const bool adjusts = settings.oom_score_adj != OomScoreAdj::kNo;
  if (!adjusts && !found_) return true;
  if (!found_) {
    int found = 0;
    if (!(std::ifstream(kFile) >> found)) {
      metrics::log::warning("Unable to read oom_score_adj: {}", std::strerror(errno));
      return false;
    }
    found_ = set_ = found;
  }
  int score = *found_;
  if (adjusts) {
    score = settings.oom_score_adj_values[settings.master.host.empty() ? 0 : 1];
    if (settings.oom_score_adj == OomScoreAdj::kRelative) score += *found_;
    score = std::clamp(score, -1000, 1000);
  }
  if (!adjusts) found_.reset();
  if (std::exchange(set_, score) == score) return true;
  std::ofstream file(kFile);
  file << score << std::flush;
  if (file) return true;
  metrics::log::warning("Unable to write oom_score_adj: {}", std::strerror(errno));
  return false;
}

}  // namespace ingot::server
