// Values from dumps: what RESTORE makes of its payload.
#pragma once

#include <string_view>

#include "src/data/built_argument.h"
#include "src/data/services.h"
#include "src/types/built_value.h"
#include "src/types/rdb/rdb_store.h"

namespace ingot::data {

// What a value may take that is held whole on its way out or in.
uint64_t held_value_max(const Services& services);

// The value of the payload, or the error reply. Failures of the engine latch in `data`.
types::BuiltValue restore_value(Services& services, storage::Reader& data, std::string_view payload,
                                const types::rdb::StoreLimits& limits,
                                const types::PutElement& put);

// The same of a payload that came as a large argument. A plain string is never held.
types::BuiltValue restore_argument(Services& services, storage::Reader& data,
                                   const BuiltArgument& argument,
                                   const types::rdb::StoreLimits& limits,
                                   const types::PutElement& put);

}  // namespace ingot::data
