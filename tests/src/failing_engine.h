// An engine whose Nth change fails, and every later one: a crash at that point, as far as whoever
// makes the changes can tell. Reads go on; they have an N of their own, for a disk that cannot be
// read.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "storage/engine.h"

namespace ingot::storage {

// How many more operations succeed. Any thread.
class Allowance {
 public:
  // So many from now on; -1: all.
  void set(int64_t operations) {
    failed_ = false;
    left_ = operations;
  }
  // Whether the next one succeeds.
  bool take() {
    int64_t left = left_;
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 0) failed_ = true;
    return left != 0;
  }
  bool failed() const { return failed_; }

 private:
  std::atomic<int64_t> left_{-1};
  std::atomic<bool> failed_{false};
};

class FailingEngine : public Engine {
 public:
  explicit FailingEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  // The first `changes` from now on succeed; -1: all do.
  void fail_after(int64_t changes) { changes_.set(changes); }
  bool failed() const { return changes_.failed(); }
  // The same of look-ups and of the moves of cursors.
  void fail_reads_after(int64_t reads) { reads_.set(reads); }
  bool read_failed() const { return reads_.failed(); }

  size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) override {
    return engine_->add_dead(kind, ids);
  }
  Status reclaim(GarbageKind kind, Reclaimed* out) override {
    return changes_.take() ? engine_->reclaim(kind, out) : failure();
  }
  Status make_room() override { return changes_.take() ? engine_->make_room() : failure(); }

  std::string_view name() const override { return engine_->name(); }
  std::string version() const override { return engine_->version(); }
  Capabilities capabilities() const override { return engine_->capabilities(); }
  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override {
    if (!reads_.take()) {
      if (error != nullptr) *error = failure();
      return Lookup::kError;
    }
    return engine_->get(snapshot, space, key, tier, value, error);
  }
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override {
    return std::make_unique<FailingCursor>(engine_->new_cursor(space, options), reads_);
  }
  std::unique_ptr<Snapshot> new_snapshot() override { return engine_->new_snapshot(); }
  std::unique_ptr<Batch> new_batch() override { return engine_->new_batch(); }
  Status flush() override { return engine_->flush(); }
  Status compact(Space space, const KeyRange& range) override {
    return engine_->compact(space, range);
  }
  Status checkpoint(const std::string& path) override { return engine_->checkpoint(path); }
  EngineStats stats() const override { return engine_->stats(); }
  uint64_t memory_bytes() const override { return engine_->memory_bytes(); }
  void reset_stats() override { engine_->reset_stats(); }
  void set_cache_bytes(uint64_t bytes) override { engine_->set_cache_bytes(bytes); }
  void set_compaction_rate(uint64_t rate) override { engine_->set_compaction_rate(rate); }

 protected:
  Status do_write(const Batch& batch, Durability durability) override {
    return changes_.take() ? engine_->write(batch, durability) : failure();
  }
  Status do_sync() override { return changes_.take() ? engine_->sync() : failure(); }
  Status do_try_resume() override { return engine_->try_resume(); }

 private:
  class FailingCursor : public Cursor {
   public:
    FailingCursor(std::unique_ptr<Cursor> cursor, Allowance& reads)
        : cursor_(std::move(cursor)), reads_(reads) {}

    bool valid() const override { return !failed_ && cursor_->valid(); }
    void seek(std::string_view key) override {
      if (allowed()) cursor_->seek(key);
    }
    void seek_for_prev(std::string_view key) override {
      if (allowed()) cursor_->seek_for_prev(key);
    }
    void next() override {
      if (allowed()) cursor_->next();
    }
    void prev() override {
      if (allowed()) cursor_->prev();
    }
    std::string_view key() const override { return cursor_->key(); }
    std::string_view value() const override { return cursor_->value(); }
    Lookup outcome() const override { return failed_ ? Lookup::kError : cursor_->outcome(); }
    Status status() const override { return failed_ ? failure() : cursor_->status(); }

   private:
    bool allowed() {
      failed_ = !reads_.take();
      return !failed_;
    }

    std::unique_ptr<Cursor> cursor_;
    Allowance& reads_;
    bool failed_ = false;
  };

  static Status failure() { return {Status::Code::kIo, "injected"}; }

  std::unique_ptr<Engine> engine_;
  Allowance changes_;
  Allowance reads_;
};

}  // namespace ingot::storage
