// A table factory that has another one for the youngest levels.
#include "storage/rocksdb/young_tables.h"

#include <utility>

namespace ingot::storage {
namespace {

thread_local rocksdb::Env::WriteLifeTimeHint life_of_next_table = rocksdb::Env::WLTH_NOT_SET;

class FileOfTable : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  void SetWriteLifeTimeHint(rocksdb::Env::WriteLifeTimeHint hint) override {
    life_of_next_table = hint;
    FSWritableFileOwnerWrapper::SetWriteLifeTimeHint(hint);
  }
};

class DividedTables : public rocksdb::TableFactory {
 public:
  DividedTables(std::shared_ptr<rocksdb::TableFactory> young,
                std::shared_ptr<rocksdb::TableFactory> others)
      : young_(std::move(young)), others_(std::move(others)) {}

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
    const auto life = std::exchange(life_of_next_table, rocksdb::Env::WLTH_NOT_SET);
    const bool young = life == rocksdb::Env::WLTH_MEDIUM;
    return (young ? young_ : others_)->NewTableBuilder(options, file);
  }

 private:
  const std::shared_ptr<rocksdb::TableFactory> young_;
  const std::shared_ptr<rocksdb::TableFactory> others_;
};

}  // namespace

std::shared_ptr<rocksdb::TableFactory> divide_tables(
    std::shared_ptr<rocksdb::TableFactory> young, std::shared_ptr<rocksdb::TableFactory> others) {
  return std::make_shared<DividedTables>(std::move(young), std::move(others));
}

std::unique_ptr<rocksdb::FSWritableFile> for_table(std::unique_ptr<rocksdb::FSWritableFile> file) {
  return std::make_unique<FileOfTable>(std::move(file));
}

}  // namespace ingot::storage
