// What command code reads through: point reads and cursors that latch their first failure, so that
// a handler is straight-line code and its caller checks once, at the end.
//
// After a failure every further read answers "absent": the handler runs on to its end and what it
// produced is thrown away. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "storage/engine.h"
#include "storage/record_cache.h"

namespace ingot::storage {

class Reader {
 public:
  virtual ~Reader() = default;

  // True and the bytes in `*value`, or false: absent, or a failure that outcome() tells.
  virtual bool get(Space space, std::string_view key, std::string* value) = 0;
  // Over [lower, upper); an empty bound is open. Failures of the cursor must be reported back by
  // `check(cursor)` when the walk ended.
  virtual std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                         std::string_view upper) = 0;
  // Before a walk over many elements: false where others would have to wait for it (on an I/O
  // thread). Then the handler returns, and runs again in the pool.
  bool begin_walk() {
    if (!may_walk()) latch_miss();
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
  bool missed() const { return missed_; }  // the disk would be needed
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
  virtual bool may_walk() const { return true; }
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

// Reads an engine at a snapshot, or at its latest state when `snapshot` is null.
class EngineReader : public Reader {
 public:
  EngineReader(Engine& engine, const Snapshot* snapshot, Tier tier, CacheUse use = CacheUse::kFill)
      : engine_(engine), snapshot_(snapshot), tier_(tier), use_(use) {}

  bool get(Space space, std::string_view key, std::string* value) override;
  std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                 std::string_view upper) override;

 protected:
  bool may_walk() const override { return tier_ == Tier::kDisk; }

 private:
  Engine& engine_;
  const Snapshot* snapshot_;
  Tier tier_;
  CacheUse use_;
};

// One lookup of the latest state in memory. A second read would not be of the same state as the
// first, so it latches: needs_snapshot() tells that apart from a cache miss.
class SingleProbe : public Reader {
 public:
  // `cache` may be null; it outlives the probe, as the engine does.
  SingleProbe(Engine& engine, RecordCache* cache) : engine_(engine), cache_(cache) {}

  bool get(Space space, std::string_view key, std::string* value) override;
  std::unique_ptr<Cursor> cursor(Space space, std::string_view lower,
                                 std::string_view upper) override;
  bool needs_snapshot() const { return needs_snapshot_; }

 protected:
  bool may_walk() const override { return false; }

 private:
  Engine& engine_;
  RecordCache* cache_;
  bool used_ = false;
  bool needs_snapshot_ = false;
};

}  // namespace ingot::storage
