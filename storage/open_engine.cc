// Opens an engine by its name.
#include <fmt/format.h>

#include "storage/engine.h"

namespace ingot::storage {

OpenResult open_engine(std::string_view name, const EngineOptions& options) {
  if (name == "rocksdb") return open_rocksdb(options);
  if (name == "leveldb") return open_leveldb(options);
  if (name == "memory") return open_memory(options);
  return {nullptr,
          Status(Status::Code::kInvalid,
                 fmt::format("unknown engine '{}'; it is one of rocksdb, leveldb, memory", name))};
}

}  // namespace ingot::storage
