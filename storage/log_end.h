// The end of an engine's logs after a power loss. What was never synced may be there with holes in
// it, and an engine either refuses to open over a hole or, when it is of zeros, reads on behind it.
// Here the logs end where the first hole is; damage in what was synced is an error.
#pragma once

#include <functional>
#include <string>

#include "storage/status.h"

namespace ingot::storage {

// Before the engine opens `directory`, while nobody else can. Cuts the logs at the first damage
// behind the mark that LogLedger left, and tells `on_log` (may be empty) of it. Does nothing
// without a mark. kCorruption: what was synced is damaged, or shorter than it was.
Status cut_lost_end(const std::string& directory,
                    const std::function<void(const std::string&)>& on_log);

}  // namespace ingot::storage
