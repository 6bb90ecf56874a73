// A Cursor over one space of LevelDB. See storage/engine.h for the contract.
#pragma once

#include <memory>

#include "storage/engine.h"
#include "storage/leveldb/leveldb_garbage.h"

namespace leveldb {
class DB;
class Snapshot;
}  // namespace leveldb

namespace ingot::storage {

// The key under which LevelDB has `key` of `space`: one byte, which is part of the format on disk,
// and the key.
std::string prefixed(Space space, std::string_view key);

// The value of the record under the empty key of each space, which parts it from the space before;
// it stands for none. An empty key that is put takes its place.
inline constexpr std::string_view kSpaceMark = "|";

// The first key behind the space.
std::string end_of(Space space);

// A cache-only cursor is never valid: LevelDB cannot tell what is in its cache.
std::unique_ptr<Cursor> make_leveldb_cursor(leveldb::DB* db, ReadEpochs* epochs, Space space,
                                            const leveldb::Snapshot* snapshot,
                                            const CursorOptions& options);

}  // namespace ingot::storage
