// Makes what a loader has read the data: all databases and all libraries of functions, in one
// commit of the writer. Blocked clients, WATCH and client side caches see it as a FLUSHALL.
//
// Any thread but the writer's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/data/rdb_loader.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"
#include "storage/status.h"

namespace ingot::exec {

class Writer;

struct Publication {
  std::shared_ptr<const data::RdbLoader> loader;  // finished
  // Called in the writer for what is to stand in the same batch (the position of the replication).
  // May be empty.
  std::function<void(types::KeyWriter&)> also;
  // Called once in the writer when that is committed, or has failed and changed nothing.
  std::function<void(const storage::Status&)> done;
};

// Runs the code of the libraries first, which may take a while. The answer is empty, or why one of
// them cannot be loaded: then nothing happens, and `done` is not called.
[[nodiscard]] std::string publish(Services& services, Writer& writer, Publication publication);

}  // namespace ingot::exec
