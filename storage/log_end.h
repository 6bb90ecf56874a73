// The end of an engine's logs after a power loss. What was never synced may be there with holes in
// it, and an engine either refuses to open over a hole or, when it is of zeros, reads on behind it.
// Here the logs end where the first hole is, also one between two logs; damage in what was synced
// is an error. So is a length that one flipped bit made longer: an engine takes the record for one
// that a crash cut off.
#pragma once

#include <functional>
#include <string>

#include "storage/salvage/engine_files.h"
#include "storage/status.h"

namespace ingot::storage {

// Before the engine opens `directory`, while nobody else can. Cuts the logs at the first damage
// behind the mark that LogLedger left, and tells `on_log` (may be empty) of it; without a mark they
// stay as they are. They are on stable storage then. kCorruption: what was synced is damaged,
// shorter than it was, or missing, or the manifest's end is damaged.
Status cut_lost_end(const std::string& directory, FileForm form,
                    const std::function<void(const std::string&)>& on_log);

}  // namespace ingot::storage
