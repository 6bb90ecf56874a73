// The LevelDB engine, opened on an Env of one's own. Ordinary callers use open_leveldb().
#pragma once

#include "storage/engine.h"

namespace leveldb {
class Env;
}

namespace ingot::storage {

// `env` must outlive the engine.
OpenResult open_leveldb_on(const EngineOptions& options, leveldb::Env* env);

}  // namespace ingot::storage
