// A Cursor of the in-memory engine. It copies the record it stands on, so that it holds no lock
// between moves. See storage/engine.h for the contract.
#pragma once

#include <string>

#include "storage/memory/memory_engine.h"

namespace ingot::storage {

class MemoryCursor : public Cursor {
 public:
  // Takes over one pin of `sequence`.
  MemoryCursor(MemoryEngine* engine, Space space, const CursorOptions& options, uint64_t sequence);
  ~MemoryCursor() override;

  bool valid() const override { return valid_; }
  void seek(std::string_view key) override;
  void seek_for_prev(std::string_view key) override;
  void next() override;
  void prev() override;
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }
  Lookup outcome() const override { return outcome_; }
  Status status() const override { return {}; }

 private:
  using Position = MemoryEngine::Versions::const_iterator;

  // Both stop at the bounds, at the first key that the snapshot sees. Under the engine's lock.
  void walk_up(Position from);    // `from` and what follows
  void walk_down(Position from);  // what precedes `from`
  bool stop_at(std::string_view key, const std::string* value);

  MemoryEngine* const engine_;
  const Space space_;
  const CursorOptions options_;
  const uint64_t sequence_;
  bool valid_ = false;
  Lookup outcome_ = Lookup::kFound;
  std::string key_;
  std::string value_;
};

}  // namespace ingot::storage
