// A table that is opened once more leaves its filter and its index in the cache, each read in one
// piece: what is in the cache is known by the table's own properties, not by who opened it.
#include "storage/rocksdb/warm_up.h"

#include <pthread.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ingot::storage {

// Of smaller ones a look-up or two fetch everything.
constexpr uint64_t kTableBytesMin = 1 << 20;

struct WarmUp::Table {
  int level;
  std::string path;
  rocksdb::ColumnFamilyHandle* family;
};

WarmUp::WarmUp(rocksdb::DB& db, std::span<rocksdb::ColumnFamilyHandle* const> families,
               uint64_t bytes_max) {
  std::vector<Table> tables = tables_of(db, families);
  if (tables.empty()) return;
  thread_ = std::jthread([&db, bytes_max, tables = std::move(tables)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "warm-up");
    run(stop, db, tables, bytes_max);
  });
}

std::vector<WarmUp::Table> WarmUp::tables_of(
    rocksdb::DB& db, std::span<rocksdb::ColumnFamilyHandle* const> families) {
  std::vector<Table> tables;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    rocksdb::ColumnFamilyMetaData found;
    db.GetColumnFamilyMetaData(family, &found);
    for (const rocksdb::LevelMetaData& level : found.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        if (file.size < kTableBytesMin) continue;
        tables.push_back(
            {.level = level.level, .path = file.db_path + file.name, .family = family});
      }
    }
  }
  std::ranges::stable_sort(tables, {}, &Table::level);
  return tables;
}

void WarmUp::run(const std::stop_token& stop, rocksdb::DB& db, const std::vector<Table>& tables,
                 uint64_t bytes_max) {
  uint64_t bytes = 0;
  for (const Table& table : tables) {
    if (stop.stop_requested() || bytes >= bytes_max) return;
    rocksdb::Options options = db.GetOptions(table.family);
    options.statistics = nullptr;  // nobody asked for these
    rocksdb::SstFileReader reader(options);
    if (!reader.Open(table.path).ok()) continue;  // a compaction may have replaced it
    const auto properties = reader.GetTableProperties();
    bytes += properties->filter_size + properties->index_size;
  }
}

}  // namespace ingot::storage
