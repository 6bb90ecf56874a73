// A Cursor over one space of LevelDB.
#include "storage/leveldb/leveldb_cursor.h"

#include <leveldb/db.h>

#include <algorithm>

#include "storage/leveldb/leveldb_status.h"

namespace ingot::storage {
namespace {

class LeveldbCursor : public Cursor {
 public:
  LeveldbCursor(leveldb::DB* db, ReadEpochs* epochs, Space space, const leveldb::Snapshot* snapshot,
                const CursorOptions& options)
      : counted_(epochs),
        space_(space),
        lower_(prefixed(space, options.lower)),
        upper_(options.upper.empty() ? end_of(space) : prefixed(space, options.upper)) {
    leveldb::ReadOptions read;
    read.verify_checksums = true;
    read.snapshot = snapshot;
    read.fill_cache = options.fill_cache;
    iterator_.reset(db->NewIterator(read));
  }

  bool valid() const override { return valid_; }

  void seek(std::string_view key) override {
    const std::string wanted = std::max(prefixed(space_, key), lower_);
    iterator_->Seek(wanted);
    check_bounds();
    if (at_mark()) next();
  }

  void seek_for_prev(std::string_view key) override {
    const std::string wanted = prefixed(space_, key);
    const bool beyond = wanted >= upper_;
    iterator_->Seek(beyond ? upper_ : wanted);
    const bool exact = !beyond && iterator_->Valid() && here() == wanted;
    if (!exact) step_back_from_seek();
    check_bounds();
    if (at_mark()) valid_ = false;
  }

  void next() override {
    iterator_->Next();
    check_bounds();
  }

  void prev() override {
    iterator_->Prev();
    check_bounds();
    if (at_mark()) valid_ = false;
  }

  std::string_view key() const override { return here().substr(1); }
  std::string_view value() const override {
    return {iterator_->value().data(), iterator_->value().size()};
  }

  Lookup outcome() const override {
    return iterator_->status().ok() ? Lookup::kFound : Lookup::kError;
  }
  Status status() const override { return to_status(iterator_->status()); }

 private:
  std::string_view here() const { return {iterator_->key().data(), iterator_->key().size()}; }

  void step_back_from_seek() {
    if (iterator_->Valid()) {
      iterator_->Prev();
    } else if (iterator_->status().ok()) {
      iterator_->SeekToLast();  // the seek ran past the last key there is
    }
  }

  bool at_mark() const { return valid_ && key().empty() && value() == kSpaceMark; }
  // LevelDB passes over a block that it cannot read, and is valid behind it.
  void check_bounds() {
    valid_ = iterator_->Valid() && here() >= lower_ && here() < upper_ && iterator_->status().ok();
  }

  const ReadEpochs::Read counted_;
  const Space space_;
  const std::string lower_;
  const std::string upper_;
  std::unique_ptr<leveldb::Iterator> iterator_;
  bool valid_ = false;
};

class MissingCursor : public Cursor {
 public:
  bool valid() const override { return false; }
  void seek(std::string_view /*key*/) override { moved_ = true; }
  void seek_for_prev(std::string_view /*key*/) override { moved_ = true; }
  void next() override {}
  void prev() override {}
  std::string_view key() const override { return {}; }
  std::string_view value() const override { return {}; }
  Lookup outcome() const override { return moved_ ? Lookup::kMiss : Lookup::kFound; }
  Status status() const override { return {}; }

 private:
  bool moved_ = false;
};

}  // namespace

std::string prefixed(Space space, std::string_view key) {
  std::string result;
  result.reserve(1 + key.size());
  result.push_back(static_cast<char>(space));
  result.append(key);
  return result;
}

std::string end_of(Space space) {
  return {static_cast<char>(static_cast<int>(space) + 1)};
}

std::unique_ptr<Cursor> make_leveldb_cursor(leveldb::DB* db, ReadEpochs* epochs, Space space,
                                            const leveldb::Snapshot* snapshot,
                                            const CursorOptions& options) {
  if (options.tier == Tier::kCacheOnly) return std::make_unique<MissingCursor>();
  return std::make_unique<LeveldbCursor>(db, epochs, space, snapshot, options);
}

}  // namespace ingot::storage
