// Which files of Redis lie in a directory, and which of them Redis would load: dump.rdb, or with
// `appendonly yes` what the manifest in appendonlydir names, or the single file of versions before
// 7.0. Looks at names and the manifest only.
#pragma once

#include <string>
#include <vector>

#include "src/settings/settings.h"

namespace ingot::server {

struct RedisFiles {
  struct Part {
    std::string path;
    bool may_be_cut_off = false;  // the last one of a log
  };
  std::vector<Part>
      parts;  // in this order; each may be an RDB file, a log, or one behind the other
  std::string passed_over;  // a sentence about files that Redis would pass over, too
  std::string error;        // why none of them can be loaded, or the choice is not ours
};

// Nothing at all where there are none.
RedisFiles find_redis_files(const settings::Settings& settings);

}  // namespace ingot::server
