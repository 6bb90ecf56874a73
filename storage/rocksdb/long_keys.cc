// Measures the keys of each table as it is written, and sets the form of the next one.
#include "storage/rocksdb/long_keys.h"

#include <rocksdb/table_properties.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "storage/check.h"

namespace ingot::storage {
namespace {

constexpr char kLongKeysName[] = "ingot.long-keys";

constexpr size_t kLongKeyBytes = 256;
constexpr uint64_t kShare = 16;  // long are the keys of a table when more than 1/16 of it is

class TableForm {
 public:
  explicit TableForm(const std::vector<std::shared_ptr<rocksdb::TableFactory>>& factories)
      : factories_(factories) {
    for (const auto& factory : factories_) {
      options_.push_back(factory->GetOptions<rocksdb::BlockBasedTableOptions>());
      INGOT_CHECK(options_.back() != nullptr);
    }
  }

  // By the average of the long keys; 0: there are few. RocksDB copies the options when it begins a
  // table. It changes those that it lets be changed in the same way, which these two are not among.
  void set(uint64_t long_key_bytes) {
    // Of an index or a filter; what RocksDB adds to it fits into 4 KB of the allocator.
    constexpr uint64_t kPartBytes = (4 << 10) - 128;
    const bool long_keys = long_key_bytes != 0;
    // While a table is written each part of its index takes a dozen times its last key.
    const uint64_t part_bytes =
        std::clamp<uint64_t>(8 * long_key_bytes, 4 * kPartBytes, uint64_t{1} << 20);
    for (rocksdb::BlockBasedTableOptions* const options : options_) {
      std::atomic_ref(options->index_block_restart_interval)
          .store(long_keys ? 16 : 8, std::memory_order_relaxed);
      std::atomic_ref(options->metadata_block_size)
          .store(long_keys ? part_bytes : kPartBytes, std::memory_order_relaxed);
    }
  }

 private:
  const std::vector<std::shared_ptr<rocksdb::TableFactory>> factories_;
  std::vector<rocksdb::BlockBasedTableOptions*> options_;
};

class KeyMeasure : public rocksdb::TablePropertiesCollector {
 public:
  explicit KeyMeasure(std::shared_ptr<TableForm> form) : form_(std::move(form)) {}

  const char* Name() const override { return kLongKeysName; }
  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& value,
                             rocksdb::EntryType /*type*/, rocksdb::SequenceNumber /*sequence*/,
                             uint64_t /*file_size*/) override {
    bytes_ += key.size() + value.size();
    if (key.size() <= kLongKeyBytes) return rocksdb::Status::OK();
    long_bytes_ += key.size();
    ++long_keys_;
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* /*properties*/) override {
    form_->set(long_bytes_ > bytes_ / kShare ? long_bytes_ / long_keys_ : 0);
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  const std::shared_ptr<TableForm> form_;
  uint64_t bytes_ = 0;
  uint64_t long_bytes_ = 0;
  uint64_t long_keys_ = 0;
};

class KeyMeasureFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit KeyMeasureFactory(std::shared_ptr<TableForm> form) : form_(std::move(form)) {}

  const char* Name() const override { return kLongKeysName; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context /*context*/) override {
    return new KeyMeasure(form_);
  }

 private:
  const std::shared_ptr<TableForm> form_;
};

}  // namespace

void adapt_to_long_keys(rocksdb::ColumnFamilyOptions* cf,
                        const std::vector<std::shared_ptr<rocksdb::TableFactory>>& factories) {
  auto form = std::make_shared<TableForm>(factories);
  form->set(0);
  cf->table_properties_collector_factories.push_back(
      std::make_shared<KeyMeasureFactory>(std::move(form)));
}

}  // namespace ingot::storage
