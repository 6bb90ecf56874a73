// Where libraries of functions stand in the engine's system space, so that they survive a restart.
#pragma once

#include <string>
#include <string_view>

#include "src/script/scripts.h"
#include "src/types/keyspace.h"
#include "storage/engine.h"

namespace ingot::script {

// -> the library's code
std::string library_key(std::string_view name);

// In the writer: stores `after` in place of `before`, and makes them those of everybody once the
// unit is committed.
void change_stored(types::KeyWriter& keys, const Libraries& before,
                   const std::shared_ptr<const Libraries>& after);

// Publishes all that are stored. Of one that cannot be loaded the log tells; it stays stored.
[[nodiscard]] storage::Status load_stored(storage::Engine& engine, Scripts& scripts);

}  // namespace ingot::script
