// How LevelDB's keys are ordered: by their bytes, as it does by itself, but with shorter keys in
// the indexes of its tables, which it holds in memory. Its own order keeps a whole key, of
// megabytes perhaps, where the key behind it is greater by one in the first byte that differs, as
// those of scores and numbers are.
#pragma once

namespace leveldb {
class Comparator;
}  // namespace leveldb

namespace ingot::storage {

// One for all databases, for good. It has the name of LevelDB's own, whose order is the same: each
// opens what the other has written.
const leveldb::Comparator* short_separators();

}  // namespace ingot::storage
