// Values from dumps: what RESTORE makes of its payload.
#pragma once

#include <string_view>

#include "src/data/services.h"
#include "src/types/built_value.h"
#include "src/types/rdb/rdb_store.h"

namespace ingot::data {

// The value of the payload, or the error reply. Failures of the engine latch in `data`.
types::BuiltValue restore_value(Services& services, storage::Reader& data, std::string_view payload,
                                const types::rdb::StoreLimits& limits,
                                const types::PutElement& put);

}  // namespace ingot::data
