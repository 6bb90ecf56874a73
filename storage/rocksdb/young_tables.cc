// A table factory that has another one for the youngest levels, and what decides between them.
#include "storage/rocksdb/young_tables.h"

#include <rocksdb/table_properties.h>

#include <atomic>
#include <utility>

#include "storage/rocksdb/flush_gate.h"

namespace ingot::storage {
namespace {

constexpr char kKeyDensityName[] = "ingot.key-density";

enum class Kind : uint8_t { kDeep, kBelowLevel0, kLevel0 };

thread_local Kind next_table = Kind::kDeep;

class FileOfTable : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  void SetWriteLifeTimeHint(rocksdb::Env::WriteLifeTimeHint hint) override {
    // The priority is that of a start, which flushes what the logs held.
    const bool flushed = on_flush_thread() || GetIOPriority() == rocksdb::Env::IO_HIGH;
    const Kind young = flushed ? Kind::kLevel0 : Kind::kBelowLevel0;
    next_table = hint == rocksdb::Env::WLTH_MEDIUM ? young : Kind::kDeep;
    FSWritableFileOwnerWrapper::SetWriteLifeTimeHint(hint);
  }
};

// How close keys stand in what compactions write. No table says how many it will hold: each is
// taken to be like the last one, and the first one to hold too many.
struct KeyDensity {
  const uint64_t table_bytes;
  const uint64_t keys_max;
  std::atomic<bool> is_low = false;
};

class DensityMeasure : public rocksdb::TablePropertiesCollector {
 public:
  DensityMeasure(std::shared_ptr<KeyDensity> density, bool counts)
      : density_(std::move(density)), counts_(counts) {}

  const char* Name() const override { return kKeyDensityName; }
  rocksdb::Status AddUserKey(const rocksdb::Slice& /*key*/, const rocksdb::Slice& /*value*/,
                             rocksdb::EntryType /*type*/, rocksdb::SequenceNumber /*sequence*/,
                             uint64_t file_size) override {
    ++keys_;
    file_bytes_ = file_size;  // up to the last block that was begun
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* /*properties*/) override {
    if (!counts_ || file_bytes_ == 0) return rocksdb::Status::OK();
    const double tables =
        static_cast<double>(density_->table_bytes) / static_cast<double>(file_bytes_);
    density_->is_low =
        tables * static_cast<double>(keys_) <= static_cast<double>(density_->keys_max);
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  const std::shared_ptr<KeyDensity> density_;
  const bool counts_;
  uint64_t keys_ = 0;
  uint64_t file_bytes_ = 0;
};

class DensityMeasureFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit DensityMeasureFactory(std::shared_ptr<KeyDensity> density)
      : density_(std::move(density)) {}

  const char* Name() const override { return kKeyDensityName; }
  // Flushes say nothing: deeper tables may be compressed.
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context context) override {
    return new DensityMeasure(density_, context.level_at_creation != 0);
  }

 private:
  const std::shared_ptr<KeyDensity> density_;
};

class DividingFactory : public rocksdb::TableFactory {
 public:
  DividingFactory(std::shared_ptr<rocksdb::TableFactory> young,
                  std::shared_ptr<rocksdb::TableFactory> others,
                  std::shared_ptr<const KeyDensity> density)
      : young_(std::move(young)), others_(std::move(others)), density_(std::move(density)) {}

  const char* Name() const override { return others_->Name(); }
  const Customizable* Inner() const override { return others_.get(); }
  bool IsDeleteRangeSupported() const override { return others_->IsDeleteRangeSupported(); }

  using TableFactory::NewTableReader;
  rocksdb::Status NewTableReader(const rocksdb::ReadOptions& read,
                                 const rocksdb::TableReaderOptions& options,
                                 std::unique_ptr<rocksdb::RandomAccessFileReader>&& file,
                                 uint64_t file_size, std::unique_ptr<rocksdb::TableReader>* reader,
                                 bool prefetch) const override {
    return others_->NewTableReader(read, options, std::move(file), file_size, reader, prefetch);
  }

  rocksdb::TableBuilder* NewTableBuilder(const rocksdb::TableBuilderOptions& options,
                                         rocksdb::WritableFileWriter* file) const override {
    const Kind kind = std::exchange(next_table, Kind::kDeep);
    const bool whole = kind == Kind::kLevel0 || (kind == Kind::kBelowLevel0 && density_->is_low);
    return (whole ? young_ : others_)->NewTableBuilder(options, file);
  }

 private:
  const std::shared_ptr<rocksdb::TableFactory> young_;
  const std::shared_ptr<rocksdb::TableFactory> others_;
  const std::shared_ptr<const KeyDensity> density_;
};

}  // namespace

void divide_tables(rocksdb::ColumnFamilyOptions* cf, DividedTables tables) {
  auto density = std::make_shared<KeyDensity>(cf->target_file_size_base, tables.keys_max);
  cf->table_factory =
      std::make_shared<DividingFactory>(std::move(tables.young), std::move(tables.others), density);
  cf->table_properties_collector_factories.push_back(
      std::make_shared<DensityMeasureFactory>(std::move(density)));
}

std::unique_ptr<rocksdb::FSWritableFile> for_table(std::unique_ptr<rocksdb::FSWritableFile> file) {
  return std::make_unique<FileOfTable>(std::move(file));
}

}  // namespace ingot::storage
