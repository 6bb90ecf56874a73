// Reads the filters and indexes of the tables that a start finds into the block cache, those of the
// upper levels first, as far as there is room for them. RocksDB does that for tables that it
// writes; of those it finds each look-up would fetch the part that it needs, so that a hard disk
// took more than a minute to serve each GET with one read.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace ingot::storage {

class WarmUp {
 public:
  // A thread does it, in the background. What cannot be read is left out: whoever needs it will
  // hear of it. `bytes_max`: of filters and indexes. The database and its families outlive it.
  WarmUp(rocksdb::DB& db, std::span<rocksdb::ColumnFamilyHandle* const> families,
         uint64_t bytes_max);
  ~WarmUp() = default;  // it ends behind the table at hand

 private:
  struct Table;
  static std::vector<Table> tables_of(rocksdb::DB& db,
                                      std::span<rocksdb::ColumnFamilyHandle* const> families);
  static void run(const std::stop_token& stop, rocksdb::DB& db, const std::vector<Table>& tables,
                  uint64_t bytes_max);

  std::jthread thread_;
};

}  // namespace ingot::storage
