// A Cursor over one column family.
#include "storage/rocksdb/rocksdb_cursor.h"

#include <rocksdb/db.h>

#include "storage/no_wait_reads.h"
#include "storage/rocksdb/rocksdb_status.h"
#include "storage/rocksdb/table_file_system.h"

namespace ingot::storage {
namespace {

class RocksdbCursor : public Cursor {
 public:
  RocksdbCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* space,
                const rocksdb::Snapshot* snapshot, const CursorOptions& options)
      : tier_(options.tier),
        lower_(options.lower),
        upper_(options.upper),
        lower_slice_(lower_),
        upper_slice_(upper_) {
    rocksdb::ReadOptions read;
    // There are none; and where it looks for them RocksDB 7.8 takes a table of which nothing could
    // be read for one without keys, and the walk for complete.
    read.ignore_range_deletions = true;
    read.snapshot = snapshot;
    read.fill_cache = options.fill_cache;
    read.max_skippable_internal_keys = options.skipped_max;
    read.read_tier = read_tier(options.tier);
    if (!lower_.empty()) read.iterate_lower_bound = &lower_slice_;
    if (!upper_.empty()) read.iterate_upper_bound = &upper_slice_;
    iterator_.reset(db->NewIterator(read, space));
  }

  bool valid() const override { return valid_; }
  void seek(std::string_view key) override {
    move([&] { iterator_->Seek(key); });
  }
  void seek_for_prev(std::string_view key) override {
    move([&] { iterator_->SeekForPrev(key); });
  }
  void next() override {
    move([&] { iterator_->Next(); });
  }
  void prev() override {
    move([&] { iterator_->Prev(); });
  }
  std::string_view key() const override { return iterator_->key().ToStringView(); }
  std::string_view value() const override { return iterator_->value().ToStringView(); }

  Lookup outcome() const override {
    if (is_missing_) return Lookup::kMiss;
    return iterator_->status().ok() ? Lookup::kFound : Lookup::kError;
  }

  Status status() const override { return is_missing_ ? Status() : to_status(iterator_->status()); }

 private:
  template <typename Step>
  void move(Step step) {
    const NoWaitReads::ForTier reads(tier_);
    step();
    valid_ = iterator_->Valid();
    if (valid_) return;
    const rocksdb::Status status = iterator_->status();
    is_missing_ = status.IsIncomplete() || is_wanted(status);
  }

  const Tier tier_;
  bool valid_ = false;
  bool is_missing_ = false;
  // RocksDB keeps pointers to the slices, and they point into the strings.
  const std::string lower_;
  const std::string upper_;
  const rocksdb::Slice lower_slice_;
  const rocksdb::Slice upper_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace

std::unique_ptr<Cursor> make_rocksdb_cursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* space,
                                            const rocksdb::Snapshot* snapshot,
                                            const CursorOptions& options) {
  return std::make_unique<RocksdbCursor>(db, space, snapshot, options);
}

}  // namespace ingot::storage
