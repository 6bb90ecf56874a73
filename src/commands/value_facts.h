// What Redis tells of a value's place in its memory, as far as that has a meaning here: for OBJECT
// and DEBUG OBJECT.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/contract/context.h"
#include "src/types/keyspace.h"

namespace ingot::commands {

// How many share the value: Redis keeps one object for each small integer.
int64_t reference_count(const types::Record& record);
// Seconds since the key was last used.
int64_t idle_seconds(contract::ReadContext& ctx, std::string_view key);

}  // namespace ingot::commands
