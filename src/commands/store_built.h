// How the STORE commands keep their results: small ones at once, large ones made in the pool while
// the writer goes on, whatever stood under the key before.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/command/context.h"
#include "src/types/prepared_value.h"

namespace ingot::commands {

struct StoreRequest {
  std::string_view target;
  command::Args sources;   // the keys that decide about the result
  bool is_large = false;   // to be made past the writer's group, in the pool ...
  bool by_writer = false;  // ... or by the writer, because `sources` are not all that decides
  uint32_t kind;           // of the keyspace event
  std::string_view event;
};

// Makes a value in the writer's group; its payload is the value's own.
types::BuiltValue build_in_group(command::WriteContext& ctx,
                                 const types::PreparedValue::Build& build);

// Answers how many elements were stored. `build` outlives the call.
void store_built(command::WriteContext& ctx, const StoreRequest& request,
                 const types::PreparedValue::Build& build);

}  // namespace ingot::commands
