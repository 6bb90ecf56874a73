// An engine whose Nth change fails, and every later one: a crash at that point, as far as whoever
// makes the changes can tell. Reads go on.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "storage/engine.h"

namespace ingot::storage {

class FailingEngine : public Engine {
 public:
  explicit FailingEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  // The first `changes` from now on succeed; -1: all do.
  void fail_after(int64_t changes) {
    failed_ = false;
    left_ = changes;
  }
  bool failed() const { return failed_; }

  Status write(const Batch& batch, Durability durability) override {
    return allowed() ? engine_->write(batch, durability) : failure();
  }
  Status sync() override { return allowed() ? engine_->sync() : failure(); }
  Status reclaim(Space space, std::span<const KeyRange> ranges) override {
    return allowed() ? engine_->reclaim(space, ranges) : failure();
  }

  std::string_view name() const override { return engine_->name(); }
  std::string version() const override { return engine_->version(); }
  Capabilities capabilities() const override { return engine_->capabilities(); }
  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override {
    return engine_->get(snapshot, space, key, tier, value, error);
  }
  void multi_get(const Snapshot* snapshot, Space space, std::span<const std::string_view> keys,
                 Tier tier, std::vector<std::string>* values, std::vector<Lookup>* outcomes,
                 Status* error) override {
    engine_->multi_get(snapshot, space, keys, tier, values, outcomes, error);
  }
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override {
    return engine_->new_cursor(space, options);
  }
  std::unique_ptr<Snapshot> new_snapshot() override { return engine_->new_snapshot(); }
  std::unique_ptr<Batch> new_batch() override { return engine_->new_batch(); }
  Status flush() override { return engine_->flush(); }
  Status try_resume() override { return engine_->try_resume(); }
  Status compact(Space space, const KeyRange& range) override {
    return engine_->compact(space, range);
  }
  Status checkpoint(const std::string& path) override { return engine_->checkpoint(path); }
  EngineStats stats() const override { return engine_->stats(); }
  void reset_stats() override { engine_->reset_stats(); }
  void set_cache_bytes(uint64_t bytes) override { engine_->set_cache_bytes(bytes); }
  void set_compaction_rate(uint64_t rate) override { engine_->set_compaction_rate(rate); }

 private:
  bool allowed() {
    int64_t left = left_;
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 0) failed_ = true;
    return left != 0;
  }
  static Status failure() { return {Status::Code::kIo, "injected"}; }

  std::unique_ptr<Engine> engine_;
  std::atomic<int64_t> left_{-1};
  std::atomic<bool> failed_{false};
};

}  // namespace ingot::storage
