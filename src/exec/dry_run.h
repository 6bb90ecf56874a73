// What the pool does for units that the writer could not finish from memory: runs them where
// waiting for the disk is allowed, on a private overlay at a view, only to load their blocks; or
// builds a large result for them.
#pragma once

#include <functional>

#include "src/contract/context.h"
#include "src/exec/services.h"
#include "src/exec/write_job.h"

namespace ingot::exec {

// Runs the job's next unit and throws away everything it did. Blocks for the disk.
void dry_run(Services& services, const WriteJob& job);

// Does what a command of the unit has asked WriteContext::from_pool() for, at a view. Blocks.
PoolOutcome do_pool_work(Services& services, const Unit& unit, const contract::PoolWork& work);

// Loads the records of the keys whose expiry is due, at most `limit`; then calls `then` on a pool
// thread.
void warm_expiry(Services& services, size_t limit, std::string low_water,
                 std::function<void()> then);

}  // namespace ingot::exec
