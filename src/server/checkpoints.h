// The directories of checkpoints: PATH is the last one, PATH.1 the one before it, and so on. Any
// thread, but one change at a time.
#pragma once

#include <cstdint>
#include <string>

#include "storage/status.h"

namespace ingot::server {

struct CheckpointPlan {
  std::string path;   // of the last one, absolute
  uint64_t keep = 1;  // how many there may be; at least 1
};

// Puts the directory `fresh`, which is whole and durable, in the place of the last checkpoint, and
// those before it one place further. Removes what is more than enough, when that is durable, under
// the name of `fresh`: what has the name of a checkpoint is whole, whenever one is killed.
storage::Status put_checkpoint(const CheckpointPlan& plan, const std::string& fresh);

struct CheckpointSpace {
  uint64_t count = 0;
  uint64_t bytes = 0;  // on the disk, of files that nothing but checkpoints has any more
};

// Looks at every file of them: not for a thread that others wait for.
CheckpointSpace measure_checkpoints(const std::string& path);

}  // namespace ingot::server
