// How dead collections and keyspaces leave RocksDB's files: whoever writes a file (a flush, any
// compaction) asks DeadIds and skips them, without a tombstone.
//
// Each file notes up to which epoch that was done, and which ids are in it (TableIds). So it is
// known without reading when an id is gone, and in which files dead bytes are.
#pragma once

#include <rocksdb/compaction_filter.h>
#include <rocksdb/table_properties.h>

#include <memory>
#include <vector>

#include "storage/codec.h"
#include "storage/dead_ids.h"

namespace ingot::storage {

// A stretch of a table file: `ids` different ids from `first` to `last`, both of which are in it.
struct IdSpan {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t ids = 0;
  uint64_t bytes = 0;  // keys and values before compression
};

// What a table file tells about itself.
struct TableIds {
  uint32_t epoch = 0;         // no id that was dead at this epoch has a value in it
  std::vector<IdSpan> spans;  // ascending; no id of the file is outside of them
};

// `dead` must outlive the factory.
std::shared_ptr<rocksdb::CompactionFilterFactory> make_reclaim_filter_factory(GarbageKind kind,
                                                                              const DeadIds* dead);

// `run` is another number for each open of the database: epochs begin anew then.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_ids_factory(GarbageKind kind,
                                                                                 uint64_t run);
// Of a file that notes nothing: that anything may be in it.
TableIds read_table_ids(const rocksdb::TableProperties& properties, uint64_t run);

}  // namespace ingot::storage
