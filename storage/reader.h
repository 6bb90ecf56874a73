// What command code reads through: point reads and cursors that latch their first failure, so that
// a handler is straight-line code and its caller checks once, at the end.
//
// After a failure every further read answers "absent": the handler runs on to its end and what it
// produced is thrown away. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/collection_cache.h"
#include "storage/engine.h"
#include "storage/order_counts.h"
#include "storage/record_cache.h"

namespace ingot::storage {

class Overlay;

class Reader {
 public:
  virtual ~Reader() = default;

  // The changes that are read with what is committed; null where nothing else is read.
  virtual Overlay* overlay() { return nullptr; }

  // Of the state that is read; null for the latest.
  virtual const Snapshot* snapshot() const { return nullptr; }
  // What is known of orders; null: nothing.
  virtual OrderCounts* order_counts() const { return nullptr; }

  // True and the bytes in `*value`, or false: absent, or a failure that outcome() tells.
  virtual bool get(Space space, std::string_view key, std::string* value) = 0;
  // Over [lower, upper); an empty bound is open. Failures of the cursor must be reported back by
  // `check(cursor)` when the walk ended.
  virtual std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                         std::string_view upper) = 0;
  // Before a walk over many elements, so many if that is known: false where others would have to
  // wait for it. Then the handler returns, and runs again where they do not.
  bool begin_walk(uint64_t elements = std::numeric_limits<uint64_t>::max()) {
    if (elements > walk_max()) latch_miss();
    return !failed();
  }
  // Calls `each` with every value of [lower, upper) that the engine does not have yet, in any
  // order: for a reply that goes on reading at a view taken now.
  virtual void uncommitted(Space, std::string_view, std::string_view,
                           const std::function<void(std::string_view, std::string_view)>&) {}
  void check(const Cursor& cursor) {
    if (cursor.outcome() == Lookup::kMiss) latch_miss();
    if (cursor.outcome() == Lookup::kError) latch_error(cursor.status());
  }

  bool failed() const { return missed_ || !error_.ok(); }
  bool missed() const { return missed_; }  // the disk would be needed, or more time
  const Status& error() const { return error_; }
  // For a caller that found bytes which cannot be.
  void latch_error(Status status) {
    if (!failed()) error_ = std::move(status);
  }
  void reset_outcome() {
    missed_ = false;
    error_ = Status();
  }

 protected:
  virtual uint64_t walk_max() const { return std::numeric_limits<uint64_t>::max(); }
  void latch_miss() {
    if (!failed()) missed_ = true;
  }
  // Whether an engine's answer is a value; latches what went wrong.
  bool settle(Lookup found, Status status) {
    if (found == Lookup::kMiss) latch_miss();
    if (found == Lookup::kError) latch_error(std::move(status));
    return found == Lookup::kFound;
  }

 private:
  bool missed_ = false;
  Status error_;
};

// Whether what a cursor reads is kept in the block cache: a long scan would sweep it.
enum class CacheUse : uint8_t { kFill, kPassBy };

// What a reader at a snapshot may find without the engine. The caches may be null.
struct HotRecords {
  RecordCache* cache = nullptr;
  RecordCache::Moment moment = 0;  // before the snapshot was taken
  bool from_disk = false;          // what they have not is read from there
  CollectionCache* images = nullptr;
  OrderCounts* counts = nullptr;
};

// Reads an engine at a snapshot, or at its latest state when `snapshot` is null.
class EngineReader : public Reader {
 public:
  EngineReader(Engine& engine, const Snapshot* snapshot, Tier tier, CacheUse use = CacheUse::kFill,
               HotRecords hot = {})
      : engine_(engine), snapshot_(snapshot), tier_(tier), use_(use), hot_(hot) {}

  const Snapshot* snapshot() const override { return snapshot_; }
  OrderCounts* order_counts() const override { return hot_.counts; }
  bool get(Space space, std::string_view key, std::string* value) override;
  std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                 std::string_view upper) override;

  // Longer walks are not begun. Without the disk none is.
  void set_walk_max(uint64_t elements) { walk_max_ = elements; }
  bool has_walked() const { return walked_; }  // a cursor was made
  // Once this is true every read fails, walks that have begun included. Asked now and then.
  void stop_when(std::function<bool()> stopped) { stopped_ = std::move(stopped); }

 protected:
  uint64_t walk_max() const override { return tier_ == Tier::kDisk ? walk_max_ : 0; }

 private:
  static constexpr size_t kNotedMax = 64;

  bool stopped() const { return stopped_ && stopped_(); }
  void note_collection(std::string_view record);
  std::shared_ptr<const CollectionImage> image(Space space, std::string_view lower,
                                               std::string_view upper);

  Engine& engine_;
  const Snapshot* snapshot_;
  Tier tier_;
  CacheUse use_;
  HotRecords hot_;
  std::vector<Metadata::Collection> noted_;  // small ones, of the records that were read
  uint64_t walk_max_ = std::numeric_limits<uint64_t>::max();
  bool walked_ = false;
  std::function<bool()> stopped_;
};

// Lookups of one key's record, and then of elements of its collection, of the latest state in
// memory. The record has a revision that every change of the elements changes: as long as it is the
// same in the end, all that was read in between is of one state. A walk is one over the image of
// that revision. Whatever needs more latches: needs_snapshot() tells that apart from a cache miss.
class KeyProbe : public Reader {
 public:
  // The caches may be null; they outlive the probe, as the engine does.
  KeyProbe(Engine& engine, RecordCache* cache, CollectionCache* images = nullptr,
           OrderCounts* counts = nullptr)
      : engine_(engine), cache_(cache), images_(images), counts_(counts) {}

  OrderCounts* order_counts() const override { return counts_; }

  bool get(Space space, std::string_view key, std::string* value) override;
  std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                 std::string_view upper) override;
  // After the last read: whether it was all of one state. If not, it needs a snapshot.
  [[nodiscard]] bool confirm();
  bool needs_snapshot() const { return needs_snapshot_; }

 protected:
  uint64_t walk_max() const override;

 private:
  bool look_up(Space space, std::string_view key, std::string* value);
  std::optional<Metadata::Collection> collection() const;
  std::shared_ptr<const CollectionImage> image(Space space, std::string_view lower,
                                               std::string_view upper);
  std::shared_ptr<const CollectionImage> make_image(Space space, CollectionId id);
  void keep(std::string_view key, std::string_view record);
  std::string_view kept_key() const { return {kept_.data(), key_bytes_}; }
  std::string_view kept_record() const { return {kept_.data() + key_bytes_, record_bytes_}; }

  Engine& engine_;
  RecordCache* cache_;
  CollectionCache* images_;
  OrderCounts* counts_;
  size_t reads_ = 0;
  bool needs_snapshot_ = false;
  // The first read's key and record; nothing when there are no elements, or they are long, as that
  // of a large collection seldom is.
  std::array<char, 256> kept_;  // not initialised: most have one read
  size_t key_bytes_ = 0;
  size_t record_bytes_ = 0;
};

}  // namespace ingot::storage
