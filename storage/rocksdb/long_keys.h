// Tables of long keys. What stands in a table's index is a key for each block, and the top level of
// an index is held in memory: of keys as long as a block, and alike at their beginnings, that is
// all the data once more. Such a table gets its index compressed and in larger parts, which short
// keys would pay for with a tenth more work for each look-up.
#pragma once

#include <rocksdb/options.h>

namespace ingot::storage {

// Each table that is written from now on is in the form that the last one of the space would have
// needed. To be called when `cf` has its table factory, of blocks.
void adapt_to_long_keys(rocksdb::ColumnFamilyOptions* cf);

}  // namespace ingot::storage
