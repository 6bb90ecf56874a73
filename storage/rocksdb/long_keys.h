// Tables of long keys. What stands in a table's index is a key for each block, and the top level of
// an index is held in memory: of keys as long as a block, and alike at their beginnings, that is
// all the data once more. Such a table gets its index compressed further and in larger parts, which
// short keys would pay for with a tenth more work for each look-up.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <memory>
#include <vector>

namespace ingot::storage {

// Each table of the space that these factories, of blocks, write from now on is in the form that
// the last one would have needed.
void adapt_to_long_keys(rocksdb::ColumnFamilyOptions* cf,
                        const std::vector<std::shared_ptr<rocksdb::TableFactory>>& factories);

}  // namespace ingot::storage
