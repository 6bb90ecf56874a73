// The first start in a directory that has data of Redis and none of ours: what Redis would load is
// loaded, piece by piece, while clients are answered -LOADING.
//
// Until all is loaded a file beside the data, <data>.loading, says that they are not complete: a
// start that finds it removes them and begins anew. So a kill, a power loss or a damaged file
// leaves nothing that could be taken for data. The files of Redis are only read.
//
// Threads: one, at the start; `stopped` may become true on another.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/exec/services.h"
#include "src/server/redis_files.h"
#include "src/settings/settings.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::server {

class FirstLoad {
 public:
  explicit FirstLoad(const settings::Settings& settings);

  // Before the engine is opened: finds out whether there is anything to load. A sentence on
  // failure.
  [[nodiscard]] std::optional<std::string> prepare();
  bool is_wanted() const { return !files_.parts.empty(); }
  // With the writer running, and Services::loading on. Soon after `stopped` it gives up, and
  // answers a sentence, too.
  [[nodiscard]] std::optional<std::string> run(exec::Services& services, exec::Writer& writer,
                                               const std::function<bool()>& stopped);

 private:
  const settings::Settings& settings_;
  const std::string marker_;
  RedisFiles files_;
};

}  // namespace ingot::server
