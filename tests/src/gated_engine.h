// An engine whose slow operations stop at a gate, so that a test decides what happens meanwhile.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tests/src/failing_engine.h"

namespace ingot::storage {

// Closed, it holds up whoever passes until it is opened. Any thread.
class Gate {
 public:
  void close() { closed_ = true; }
  void open() {
    closed_ = false;
    closed_.notify_all();
  }
  void pass() {
    ++waiting_;
    closed_.wait(true);
    --waiting_;
  }
  int waiting() const { return waiting_; }

 private:
  std::atomic<bool> closed_{false};
  std::atomic<int> waiting_{0};
};

class GatedEngine : public FailingEngine {
 public:
  using FailingEngine::FailingEngine;

  Gate disk_reads;      // look-ups that may wait for the disk
  Gate walks;           // the making of cursors that may
  Gate writes;          // before they are visible
  Gate visible_writes;  // when they are

  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override {
    if (tier == Tier::kDisk && space == Space::kMeta) disk_reads.pass();
    return FailingEngine::get(snapshot, space, key, tier, value, error);
  }
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override {
    if (options.tier == Tier::kDisk && space == Space::kMeta) walks.pass();
    return FailingEngine::new_cursor(space, options);
  }

 protected:
  Status do_write(const Batch& batch, Durability durability) override {
    writes.pass();
    Status status = FailingEngine::do_write(batch, durability);
    visible_writes.pass();
    return status;
  }
};

}  // namespace ingot::storage
