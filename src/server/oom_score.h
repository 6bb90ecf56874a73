// oom-score-adj: how early the kernel ends this process when memory runs out.
#pragma once

#include <mutex>
#include <optional>

#include "src/settings/settings.h"

namespace ingot::server {

class OomScore {
 public:
  // As the settings ask for, by whether a master is followed; with `oom-score-adj no` as it was
  // before. False, with a word in the log, when the kernel refuses. Any thread.
  bool apply(const settings::Settings& settings);

 private:
  std::mutex mutex_;
  std::optional<int> found_;  // before it was adjusted; nothing: it is not
  int set_ = 0;               // what it was adjusted to
};

}  // namespace ingot::server
