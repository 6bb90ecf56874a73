// The LevelDB engine, opened on a disk of one's own. Ordinary callers use open_leveldb().
#pragma once

#include "storage/engine.h"

namespace ingot::storage {

class Disk;

// `disk` must outlive the engine.
OpenResult open_leveldb_on(const EngineOptions& options, Disk* disk);

}  // namespace ingot::storage
